"""A seccomp filter for the box: what a notebook never needs, and what would go around the box's limits.

Memory that belongs to no process is not counted when the box is watched (memfd, System V shared memory and queues, file
systems of a namespace of one's own), so it cannot be made. The filter is a classic BPF program as `bwrap --seccomp` reads it:
`struct sock_filter` after `struct sock_filter` (linux/filter.h, linux/seccomp.h).
"""

from __future__ import annotations

import platform
import struct

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
#: Offsets in `struct seccomp_data`; the first argument's low half is the first on little-endian machines.
_NUMBER, _ARCHITECTURE, _ARGUMENT_0 = 0, 4, 16
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38
#: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
_NEW_NAMESPACES = 0x7E020000
_X32 = 0x40000000

#: machine -> (AUDIT_ARCH, clone, clone3, refused system calls)
_MACHINES: dict[str, tuple[int, int, int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        56,
        435,
        {
            "shmget": 29,
            "semget": 64,
            "msgget": 68,
            "ptrace": 101,
            "pivot_root": 155,
            "mount": 165,
            "umount2": 166,
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "unshare": 272,
            "perf_event_open": 298,
            "setns": 308,
            "process_vm_readv": 310,
            "process_vm_writev": 311,
            "memfd_create": 319,
            "bpf": 321,
            "userfaultfd": 323,
            "io_uring_setup": 425,
            "open_tree": 428,
            "fsopen": 430,
            "memfd_secret": 447,
        },
    ),
    "aarch64": (
        0xC00000B7,
        220,
        435,
        {
            "umount2": 39,
            "mount": 40,
            "pivot_root": 41,
            "unshare": 97,
            "ptrace": 117,
            "msgget": 186,
            "semget": 190,
            "shmget": 194,
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "perf_event_open": 241,
            "setns": 268,
            "process_vm_readv": 270,
            "process_vm_writev": 271,
            "memfd_create": 279,
            "bpf": 280,
            "userfaultfd": 282,
            "io_uring_setup": 425,
            "open_tree": 428,
            "fsopen": 430,
            "memfd_secret": 447,
        },
    ),
}


def program(machine: str | None = None) -> bytes | None:
    """The filter for this (or another) machine; None where its system calls are not known."""
    found = _MACHINES.get(machine or platform.machine())
    if found is None:
        return None
    architecture, clone, clone3, refused = found
    # Another architecture's calls (32-bit ones on x86_64) have other numbers: none of them.
    code = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, architecture, yes=1),
        _step(_RETURN, _ERRNO | _ENOSYS),
        _step(_LOAD, _NUMBER),
    ]
    if architecture == 0xC000003E:
        code += [_step(_AT_LEAST, _X32, no=1), _step(_RETURN, _ERRNO | _ENOSYS)]
    # The C library falls back to clone, whose flags can be read here.
    code += [_step(_EQUAL, clone3, no=1), _step(_RETURN, _ERRNO | _ENOSYS)]
    for number in refused.values():
        code += [_step(_EQUAL, number, no=1), _step(_RETURN, _ERRNO | _EPERM)]
    code += [
        _step(_EQUAL, clone, no=3),
        _step(_LOAD, _ARGUMENT_0),
        _step(_ANY_BIT, _NEW_NAMESPACES, no=1),
        _step(_RETURN, _ERRNO | _EPERM),
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(code)


def _step(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    """One instruction; `yes` and `no` are how many to skip."""
    return struct.pack("=HBBI", code, yes, no, value)
