package audit

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store/dirstore"
)

// If every file of a store is damaged, there are millions of places with violations. The memory and the
// findings of a task must nevertheless be bounded, and the report must count each place once.
func TestTheViolationsOfManyPlacesTakeBoundedMemory(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const places = maxPlaces + 5_000
	check := Check{0, "files", "files"}
	order := rand.New(rand.NewPCG(1, 2))
	report := func(tasks int) *Report {
		whole := New(Options{Bucket: b, Sample: 1})
		for task := range tasks {
			a := New(Options{Bucket: b, Sample: 1})
			for range 2 { // two steps find each place
				for _, n := range order.Perm(places) {
					if n%tasks == task {
						key := fmt.Sprintf("file-%06d", n)
						a.WrongOnce(check, key, 0, At{Object: key}, "it cannot be read")
					}
				}
			}
			f := a.findings()
			if len(f.Places) > maxPlaces || len(f.Violations) > maxViolations {
				t.Errorf("the findings of a task have %d violations and %d places", len(f.Violations), len(f.Places))
			}
			whole.add(f)
			if len(whole.places) > maxPlaces {
				t.Errorf("the violations of %d places are kept", len(whole.places))
			}
		}
		return whole.Report()
	}
	one, several := report(1), report(3)
	if one.Found() != places || len(one.Violations) != maxViolations || one.Violations[0].Object != "file-000000" || one.Violations[maxViolations-1].Object != fmt.Sprintf("file-%06d", maxViolations-1) {
		t.Errorf("%d violations in %d places, of which %v are listed", one.Found(), places, one.Violations)
	}
	if !reflect.DeepEqual(one, several) {
		t.Errorf("one task reports %+v, three report %+v", one, several)
	}
}
