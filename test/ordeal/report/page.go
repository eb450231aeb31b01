package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ductor/test/ordeal/judge"
)

// Fix describes a bug in ductor that the tests in test/ordeal have found, and the commit that fixed the bug.
type Fix struct {
	Date   string // date of the fix, such as 2026-11-29
	What   string // the bug, described as a user saw it
	How    string // how the bug was found, for example "real, rule shown (seed 4)"
	Commit string // subject of the commit that fixed the bug; empty if it is not fixed
	Case   string // name of the test for the bug; empty if only a seed reproduces the bug
}

// Fixes reads the list of real bugs from a file.
func Fixes(path string) (all []Fix, err error) { return all, load(path, &all) }

// Cause explains why the scenario of a seed violates a rule. The cause is a bug in ductor, in package judge, or in the
// package that ran the scenario (World).
type Cause struct {
	World, Rule string
	Seed        uint64
	What        string
}

// Causes reads the explanations of violations from a file.
func Causes(path string) (all []Cause, err error) { return all, load(path, &all) }

// Results contains all stored results.
type Results struct {
	Runs    []Run
	Defects []Defect
	Fixes   []Fix
	Causes  []Cause
}

// Explain returns the explanation of a violation from the list of causes (causes.json), or "" if there is none.
func (r Results) Explain(world string, found Found) string {
	for _, c := range r.Causes {
		if c.World == world && c.Rule == found.Rule && c.Seed == found.Seed {
			return c.What
		}
	}
	return ""
}

// Page returns the content of docs/reliability.md.
func Page(r Results) string {
	var b strings.Builder
	b.WriteString(intro)
	promises(&b)
	tried(&b, r.Runs)
	explained(&b, r)
	found(&b, r.Fixes)
	b.WriteString(howToRun)
	checked(&b, r.Defects)
	b.WriteString(notPromised)
	return b.String()
}

const intro = `# Reliability

A program that acts for you must not lose a message, and must not act twice. ductor is tried by scenarios that nobody wrote: a number, the
*seed*, decides what users do, what agents do and what goes wrong. Then a judge looks from outside. This page counts the tries.

It is written by ` + "`go run ./test/ordeal/publish`" + ` from the results in ` + "`test/ordeal/results`" + `; no number is written by hand.
[invariants.md](invariants.md) lists all promises, and the tests of each.

`

func promises(b *strings.Builder) {
	b.WriteString("## What is promised, and judged\n\n| rule | promise |\n|---|---|\n")
	for _, r := range judge.Rules() {
		fmt.Fprintf(b, "| `%s` | %s |\n", r.Name, r.Promise)
	}
	b.WriteString("\nThe judge knows nothing of how ductor works. It reads the messages of the chats with all their " +
		"versions, what agents logged themselves, the\n" +
		"files, the database, and what is left of processes, goroutines and temporary files.\n\n")
}

func tried(b *strings.Builder, runs []Run) {
	b.WriteString("## What is tried, and how often\n\n")
	if len(runs) == 0 {
		b.WriteString("No run is kept yet.\n\n")
		return
	}
	b.WriteString("| world | commit | date | seeds | messages | time in the world | played twice, equal | " +
		"seeds with violations |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range runs {
		fmt.Fprintf(b, "| %s | `%.8s` | %s | %s | %s | %s | %s | %d |\n", r.World, r.Commit,
			r.Date.Format(time.DateOnly), number(r.Seeds), number(r.Messages),
			lasted(r.Lived), number(r.Replayed), r.violating())
	}
	b.WriteString("\nIn the *simulated* world all of ductor runs in one process, with a simulated Telegram, scripted " +
		"agents of every protocol, SQLite on a\n" +
		"simulated disk and a clock that jumps. In the *real* one ductor, its runner and agents are processes that " +
		"are killed, on real file systems.\n\n")
	worlds := map[string]map[string]int{}
	for _, r := range runs {
		if worlds[r.World] == nil {
			worlds[r.World] = map[string]int{}
		}
		for kind, n := range r.Steps {
			worlds[r.World][kind] += n
		}
	}
	faults := map[string]bool{}
	for _, r := range runs {
		for kind := range r.Faults {
			faults[kind] = true
		}
	}
	table(b, "what users do", worlds, func(kind string) bool { return !faults[kind] })
	table(b, "what goes wrong", worlds, func(kind string) bool { return faults[kind] })
}

// violating returns the number of scenarios in which ductor violated a rule.
func (r Run) violating() int {
	seeds := map[uint64]bool{}
	for _, v := range r.Violations {
		seeds[v.Seed] = true
	}
	return len(seeds)
}

// explained writes the explanation of each violation.
func explained(b *strings.Builder, r Results) {
	var rows []string
	for _, run := range r.Runs {
		for _, v := range run.Violations {
			row := fmt.Sprintf("| %s | %d | `%s` | %s |\n", run.World, v.Seed, v.Rule,
				cmp.Or(r.Explain(run.World, v), "*not known yet*"))
			if !slices.Contains(rows, row) {
				rows = append(rows, row)
			}
		}
	}
	if len(rows) > 0 {
		b.WriteString("What the violations were:\n\n| world | seed | rule | cause |\n|---|---|---|---|\n" +
			strings.Join(rows, "") + "\n")
	}
}

// table writes a table with the number of steps of each kind. The table has one column for each package that ran
// scenarios.
func table(b *strings.Builder, title string, worlds map[string]map[string]int, wanted func(string) bool) {
	names := slices.Sorted(maps.Keys(worlds))
	kinds := map[string]int{}
	for _, steps := range worlds {
		for kind, n := range steps {
			if wanted(kind) {
				kinds[kind] += n
			}
		}
	}
	fmt.Fprintf(b, "| %s | %s |\n|---%s|\n", title, strings.Join(names, " | "), strings.Repeat("|---", len(names)))
	sorted := slices.SortedFunc(maps.Keys(kinds), func(x, y string) int {
		return cmp.Or(kinds[y]-kinds[x], strings.Compare(x, y))
	})
	for _, kind := range sorted {
		fmt.Fprintf(b, "| %s |", kind)
		for _, name := range names {
			fmt.Fprintf(b, " %s |", number(worlds[name][kind]))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

func found(b *strings.Builder, fixes []Fix) {
	b.WriteString("## What was found, and when it was fixed\n\n")
	if len(fixes) == 0 {
		b.WriteString("Nothing yet.\n\n")
		return
	}
	b.WriteString("| date | what was wrong | found by | fixed by | repeated by |\n|---|---|---|---|---|\n")
	for _, f := range fixes {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", f.Date, f.What, f.How, cmp.Or(f.Commit, "*open*"),
			cmp.Or(f.Case, "its seed"))
	}
	b.WriteString("\n")
}

const howToRun = `## How to run it

` + "```sh" + `
go test ./test/ordeal/simulated -run TestSeeds -jobs 2 -from 1 -seeds 1000       # play and judge seeds
go test ./test/ordeal/simulated -run TestSeeds -from 42 -seeds 1 -v              # one seed, with all that happened
go test ./test/ordeal/simulated -run TestScript -v -shrink 42                    # its scenario, as short as it still fails
go test ./test/ordeal/simulated -run TestScript -v -script scenario.txt          # a scenario of your own
DUCTOR_TEST_LONG=1 go test ./test/ordeal/real -run TestOrdeal -seeds 100          # real processes; needs namespaces
go run ./test/ordeal/defects                                                     # check the harness with planted defects
` + "```" + `

A scenario is a text: ` + "`owner says p1: text 60; run; ask`" + `, ` + "`telegram drop-after at sendMessage`" + `, ` + "`crash at call 3 for 5s`" + `. Package
` + "`test/ordeal/scenario`" + ` has the language.

`

func checked(b *strings.Builder, defects []Defect) {
	b.WriteString("## How the harness is checked\n\nA harness that finds nothing may be blind. So defects are " +
		"planted into ductor, one at a time, and seeds of the simulated world are played until a\n" +
		"rule finds each. The patches are in `test/ordeal/defects`. Each rule also has hand-made evidence that " +
		"violates it, and evidence that does not.\n\n")
	if len(defects) == 0 {
		b.WriteString("No hunt is kept yet.\n\n")
		return
	}
	b.WriteString("| planted defect | | found after seeds | by rule |\n|---|---|---|---|\n")
	hits := 0
	for _, d := range defects {
		seeds, rule := "not within "+number(d.Seeds), "—"
		switch {
		case d.Seeds == 0:
			seeds = "not tried yet"
		case d.Found:
			seeds, rule = number(d.Seeds), "`"+d.Rule+"`"
			hits++
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", d.Name, d.Title, seeds, rule)
	}
	fmt.Fprintf(b, "\n%d of %d planted defects were found so far.\n\n", hits, len(defects))
}

const notPromised = `## What is not promised

- After a power failure a turn that began in the last second may run again: the prompt leaves without waiting for the disk.
- A message whose arrival Telegram never confirmed is not sent again. It may be missing; the chat then says so and offers **Show again**.
- A message that ductor sent in the moment of its death may keep its buttons: nobody told ductor its number. If the disk is full, that moment lasts
  until 15 seconds after there is room.
- What an agent does outside of its project, and what a model says, is not judged.
- A disk that lies about what it flushed, and a Telegram that loses what it accepted, are not survived.
- Seeds are samples. That none fails shows that failures are rare, not that there are none.
`

func number(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func lasted(d time.Duration) string {
	if d >= 48*time.Hour {
		return number(int(d/(24*time.Hour))) + " days"
	}
	return d.Round(time.Minute).String()
}
