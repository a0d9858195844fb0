package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// readmeConfig is the config that jobs/README.md documents.
func readmeConfig(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text2, ok := strings.Cut(string(text), "## Config\n")
	_, text2, ok2 := strings.Cut(text2, "```yaml\n")
	block, _, ok3 := strings.Cut(text2, "```\n")
	if !ok || !ok2 || !ok3 {
		t.Fatal("jobs/README.md has no YAML under Config")
	}
	return block
}

func TestReadmeShowsEveryDefault(t *testing.T) {
	got := read(t, readmeConfig(t))
	got.UserAgent, got.Politeness.Domains, got.Plan.Budgets.Domains, got.Plan.Scope = "", nil, nil, Scope{}
	want := Default()
	every := got.Politeness.PerAddressDelay
	got.Politeness.PerAddressDelay = nil // that it is unset says more than its default
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("Default (-), jobs/README.md (+):\n%s", d)
	}
	if every == nil || time.Duration(*every) != 200*time.Millisecond {
		t.Errorf("jobs/README.md says per_address_delay: %v", every)
	}
}

func TestReadmesNameEveryKey(t *testing.T) {
	k8s, err := os.ReadFile("../../k8s/README.md")
	if err != nil {
		t.Fatal(err)
	}
	named := func(text, key string) bool {
		return regexp.MustCompile(`(^|[^a-z_])` + key + `([^a-z_]|$)`).MatchString(text)
	}
	block := readmeConfig(t)
	var walk func(at string, kind reflect.Type, text string)
	walk = func(at string, kind reflect.Type, text string) {
		for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Map || kind.Kind() == reflect.Slice {
			kind = kind.Elem()
		}
		if kind.Kind() != reflect.Struct {
			return
		}
		for i := range kind.NumField() {
			f := kind.Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if key == "" {
				continue
			}
			if at+key == "kubernetes" {
				text = string(k8s)
			}
			if !named(text, key) {
				t.Errorf("no README names %s%s", at, key)
			}
			walk(at+key+".", f.Type, text)
		}
	}
	walk("", reflect.TypeFor[Config](), block)
}
