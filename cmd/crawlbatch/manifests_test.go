package main

import (
	"io"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The CronJob's command lines must be valid commands, and must name the month for which the CronJob made the
// Job.
func TestTheCronJobPlansAndRunsTheMonthItWasMadeFor(t *testing.T) {
	body, err := os.ReadFile("../../k8s/manifests/cronjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cron batchv1.CronJob
	if err := yaml.UnmarshalStrict(body, &cron); err != nil {
		t.Fatal(err)
	}
	// values holds the text that the kubelet puts in the place of each $(NAME).
	values := map[string]string{"JOB_NAME": "crawlbatch-29891520", "STORE": "s3://bucket/crawls", "NAMESPACE": "crawl"}
	variable := regexp.MustCompile(`\$\((\w+)\)`)
	spec := cron.Spec.JobTemplate.Spec.Template.Spec
	got := map[string][]string{}
	for _, c := range append([]corev1.Container{spec.InitContainers[0]}, spec.Containers...) {
		var args []string
		for _, a := range c.Args {
			args = append(args, variable.ReplaceAllStringFunc(a, func(v string) string {
				value, ok := values[variable.FindStringSubmatch(v)[1]]
				if !ok {
					t.Errorf("%s: nobody sets %s", c.Name, v)
				}
				return value
			}))
		}
		o := &common{in: nil, out: io.Discard, err: io.Discard}
		cmd, rest, err := newRoot(o).Find(args)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err == nil {
			err = cmd.Root().PersistentPreRunE(cmd, nil)
		}
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if c.Name == "plan" && cmd.Flags().Lookup("after-earlier").Value.String() != "true" {
			t.Error("the plan of a month does not wait for earlier months")
		}
		got[c.Name] = []string{cmd.Name(), cmd.Flags().Lookup("month").Value.String(), o.store, o.config}
	}
	const file = "/etc/crawlbatch/crawlbatch.yaml"
	want := map[string][]string{
		"plan": {"plan", "2026-11", "s3://bucket/crawls", file},
		"run":  {"run", "2026-11", "s3://bucket/crawls", file},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
