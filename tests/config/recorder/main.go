// Asks Kubernetes' own scheduler code what it makes of configurations.
//
// Standard input: one JSON object a line, {"id": n, "doc": "text of the configuration"}.
// Standard output: the same id with the stage and text of the refusal, or with the plugins of each
// profile at each extension point and the completed configuration as YAML.
// Argument (optional): feature gates, as for --feature-gates.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	_ "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

type req struct {
	ID  int    `json:"id"`
	Doc string `json:"doc"`
}
type res struct {
	ID     int                        `json:"id"`
	Stage  string                     `json:"stage"`
	Err    string                     `json:"err"`
	Points map[string]json.RawMessage `json:"points,omitempty"`
	Yaml   string                     `json:"yaml,omitempty"`
}

func one(doc string) (r res) {
	file, err := os.CreateTemp("", "config-*.yaml")
	if err != nil {
		panic(err)
	}
	f := file.Name()
	defer os.Remove(f)
	file.WriteString(doc)
	file.Close()
	cfg, err := options.LoadConfigFromFile(klog.Background(), f)
	if err != nil {
		r.Stage, r.Err = "load", err.Error()
		return
	}
	if err := validation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		r.Stage, r.Err = "validate", err.Error()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rc := &restclient.Config{Host: "http://127.0.0.1:1"}
	cl, _ := clientset.NewForConfig(rc)
	inf := informers.NewSharedInformerFactory(cl, 0)
	dyn := dynamicinformer.NewDynamicSharedInformerFactory(nil, 0)
	b := events.NewEventBroadcasterAdapter(cl)
	completed := []kubeschedulerconfig.KubeSchedulerProfile{}
	s, err := scheduler.New(ctx, cl, inf, dyn, profile.RecorderFactory(b.NewRecorder),
		scheduler.WithComponentConfigVersion(cfg.TypeMeta.APIVersion),
		scheduler.WithKubeConfig(rc),
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithPercentageOfNodesToScore(cfg.PercentageOfNodesToScore),
		scheduler.WithExtenders(cfg.Extenders...),
		scheduler.WithParallelism(cfg.Parallelism),
		scheduler.WithBuildFrameworkCapturer(func(p kubeschedulerconfig.KubeSchedulerProfile) { completed = append(completed, p) }),
	)
	if err != nil {
		r.Stage, r.Err = "init", err.Error()
		return
	}
	r.Points = map[string]json.RawMessage{}
	for n, p := range s.Profiles {
		j, _ := json.Marshal(p.ListPlugins())
		r.Points[n] = j
	}
	cfg.Profiles = completed
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeYAML)
	y, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, configv1.SchemeGroupVersion), cfg)
	if err != nil {
		r.Err = "ENCODE " + err.Error()
	}
	r.Yaml = string(y)
	return
}

func safe(doc string) (r res) {
	defer func() {
		if e := recover(); e != nil {
			r = res{Stage: "panic", Err: fmt.Sprint(e)}
		}
	}()
	return one(doc)
}

func main() {
	klog.SetOutput(os.Stderr)
	klog.LogToStderr(false)
	if len(os.Args) > 1 && os.Args[1] != "" {
		if err := utilfeature.DefaultMutableFeatureGate.Set(os.Args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	sc := bufio.NewScanner(os.Stdin)
	sc.Buffer(make([]byte, 1<<24), 1<<24)
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for sc.Scan() {
		var q req
		if err := json.Unmarshal(sc.Bytes(), &q); err != nil {
			panic(err)
		}
		r := safe(q.Doc)
		r.ID = q.ID
		enc.Encode(r)
	}
}
