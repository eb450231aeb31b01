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
		"| `lost` | It is lost | 12 | `ran` |", "not within 500", "1 of 2 planted defects",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
}
