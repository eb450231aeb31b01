package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// docs/reliability.md matches the stored results.
func TestThePageIsThatOfTheResults(t *testing.T) {
	results, err := Load("../results")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/reliability.md")
	if err != nil || string(page) != Page(results) {
		t.Errorf("docs/reliability.md is out of date, %v: go run ./test/ordeal/publish", err)
	}
}

// Each violation of a published run is understood.
func TestEveryViolationHasACause(t *testing.T) {
	results, err := Load("../results")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results.Runs {
		for _, v := range r.Violations {
			if results.Explain(r.World, v) == "" {
				t.Errorf("causes.json has no cause of seed %d of the %s world: %s", v.Seed, r.World, v.Detail)
			}
		}
	}
}

func TestARunIsCountedAndKept(t *testing.T) {
	s, err := scenario.Parse("seed 7\nowner says p1: run\ncrash\ntelegram 429 for 1s\ntelegram 429 for 2s\n")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	a, b := Run{World: "simulated", Commit: "0123456789", Date: began, First: 7}, Run{First: 8}
	a.Add(judge.Evidence{Scenario: s, Began: began, Ended: began.Add(time.Hour)},
		[]judge.Violation{{Rule: "once", Token: "p1", Detail: "twice"}})
	b.Add(judge.Evidence{Scenario: s, Began: began, Ended: began.Add(time.Hour)}, nil)
	a.Merge(b)
	dir := t.TempDir()
	if err := a.Save(filepath.Join(dir, "runs", "one.json")); err != nil {
		t.Fatal(err)
	}
	if err := SaveDefects(filepath.Join(dir, "defects.json"), []Defect{
		{Name: "lost", Title: "It is lost", Seeds: 12, Found: true, Rule: "ran"}, {Name: "hidden", Seeds: 500},
	}); err != nil {
		t.Fatal(err)
	}
	results, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	page := Page(results)
	for _, want := range []string{
		"| simulated | `01234567` | 2027-01-01 | 2 | 2 | 2h0m0s | 0 | 1 |", "| telegram 429 | 4 |", "| crash | 2 |",
		"| say | 2 |",
		"| simulated | 7 | `once` | *not known yet* |",
		"| `lost` | It is lost | 12 | `ran` |", "not within 500", "1 of 2 planted defects",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	results.Causes = []Cause{{World: "simulated", Rule: "once", Seed: 7, What: "The agent repeats itself"}}
	if want := "| simulated | 7 | `once` | The agent repeats itself |"; !strings.Contains(Page(results), want) {
		t.Errorf("the page has no %q:\n%s", want, page)
	}
}
