"""nbgrader for everybody on the hub: which course, and where its exchange is. Belongs into /etc/jupyter/."""

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "scheduler-lab"
# drwxrwxrwx: nbgrader makes the folders in it such that learners see releases and can only write submissions.
c.Exchange.root = "/srv/nbgrader/exchange"
c.Exchange.path_includes_course = True
