package archtest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	update = flag.Bool("update", false, "lower the ceilings in ceilings.txt to today's numbers, and write the table "+
		"of packages")
	exact = flag.Bool("exact", false, "fail for a ceiling above its number, too")
)

const (
	ceilingsFile   = "ceilings.txt"
	ceilingsHeader = `# No number may rise above its ceiling. Ceilings only go down: "go test ./internal/archtest -update" lowers them
# to today's numbers and removes the lines of those that reached the goal. A number without a line has the goal as
# its ceiling. Code that moves to another package takes its numbers along: then lower one line and raise the other
# by hand, so that the sum stays. Production code and tests have ceilings of their own: "bot_test" stands for the
# tests of package bot, and for all files of a simulator or a tool.
#
#   quantity            counts, in one package                                                     goal
#   clauses             habits of prose that cost readers time, in 1,000 lines of comments, in tens  50
#   excess-fields       fields and booleans of wide structs past the limits of 12 and 2               0
#   excess-parameters   parameters of functions past 6                                                0
#   function-lines      lines of the longest function                                                60
#   lone-interfaces     interfaces with one implementation and no fake                                0
#   repeated-contracts  methods whose comments repeat the comment at the interface                    0
#   single-use-structs  structs without a method that stand in one other struct and nowhere else      0
#   tokens              tokens of code                                                            30000
#   wide-lines          lines of code past 120 columns                                                0
#   wide-structs        structs with state and, with all that they embed, past 12 fields,             0
#                       or past 2 booleans beside a mutex
`
)

// TestNoNumberIsAboveItsCeiling compares all numbers with their ceilings.
func TestNoNumberIsAboveItsCeiling(t *testing.T) {
	text, err := os.ReadFile(ceilingsFile)
	if err != nil {
		t.Fatal(err)
	}
	ceilings, err := parseCeilings(string(text))
	if err != nil {
		t.Fatal(err)
	}
	measured := measure(parsedTree(t))
	if *update {
		if err := os.WriteFile(ceilingsFile, []byte(formatCeilings(lowered(ceilings, measured.numbers))),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	above, below := compare(ceilings, measured)
	for _, problem := range above {
		t.Error(problem)
	}
	for _, note := range below {
		if *exact {
			t.Error(note)
		} else if !*update {
			t.Log(note)
		}
	}
}

// compare describes the numbers above their ceilings, and the ceilings that can be lowered.
func compare(ceilings map[counted]int, measured *measurement) (above, below []string) {
	keys := map[counted]bool{}
	for key := range ceilings {
		keys[key] = true
	}
	for key := range measured.numbers {
		keys[key] = true
	}
	for _, key := range slices.SortedFunc(maps.Keys(keys), compareKeys) {
		n := measured.numbers[key]
		ceiling, listed := ceilings[key]
		goal := goals[key.what]
		switch {
		case listed && n > ceiling:
			above = append(above, fmt.Sprintf("%s of %s: %d, and the ceiling in %s is %d%s", key.what, key.where, n,
				ceilingsFile, ceiling, measured.examples(key)))
		case !listed && n > goal:
			above = append(above, fmt.Sprintf("%s of %s: %d, and the goal is %d%s", key.what, key.where, n, goal,
				measured.examples(key)))
		case listed && n <= goal:
			below = append(below, fmt.Sprintf("%s of %s: %d reaches the goal; %s removes its line", key.what, key.where,
				n, updateCommand))
		case listed && n < ceiling:
			below = append(below, fmt.Sprintf("%s of %s: %d, below its ceiling of %d; %s lowers it", key.what,
				key.where, n, ceiling, updateCommand))
		}
	}
	return above, below
}

// updateCommand is the command that lowers ceilings.
const updateCommand = "go test ./internal/archtest -update"

// examples lists places that make up a number.
func (m *measurement) examples(key counted) string {
	const most = 20
	places := m.places[key]
	if key.what == tokens || len(places) == 0 {
		return ""
	}
	more := ""
	if len(places) > most {
		more = fmt.Sprintf("\n\tand %d more", len(places)-most)
		places = places[:most]
	}
	return ":\n\t" + strings.Join(places, "\n\t") + more
}

// lowered returns the ceilings that numbers above the goal need, none higher than before.
func lowered(ceilings, numbers map[counted]int) map[counted]int {
	out := map[counted]int{}
	for key, ceiling := range ceilings {
		if n := min(ceiling, numbers[key]); n > goals[key.what] {
			out[key] = n
		}
	}
	return out
}

// parseCeilings reads lines of a quantity, a place and a number; the lowest of several lines counts. A line that begins
// with # is a comment.
func parseCeilings(text string) (map[counted]int, error) {
	ceilings := map[counted]int{}
	for i, line := range strings.Split(text, "\n") {
		cells := strings.Fields(line)
		if len(cells) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(cells) != 3 {
			return nil, fmt.Errorf("%s:%d: want a quantity, a place and a number: %q", ceilingsFile, i+1, line)
		}
		key := counted{cells[0], cells[1]}
		n, err := strconv.Atoi(cells[2])
		if _, known := goals[key.what]; !known || err != nil {
			return nil, fmt.Errorf("%s:%d: no such quantity or no number: %q", ceilingsFile, i+1, line)
		}
		if lower, twice := ceilings[key]; twice {
			n = min(n, lower) // a merge of two branches keeps the lines of both
		}
		ceilings[key] = n
	}
	return ceilings, nil
}

func formatCeilings(ceilings map[counted]int) string {
	var b strings.Builder
	b.WriteString(ceilingsHeader)
	last := ""
	for _, key := range slices.SortedFunc(maps.Keys(ceilings), compareKeys) {
		if key.what != last {
			b.WriteString("\n")
			last = key.what
		}
		fmt.Fprintf(&b, "%-18s  %-34s %7d\n", key.what, key.where, ceilings[key])
	}
	return b.String()
}

func compareKeys(a, b counted) int {
	return strings.Compare(a.what+" "+a.where, b.what+" "+b.where)
}

func TestCompareWithCeilings(t *testing.T) {
	bot := func(n int) map[counted]int { return map[counted]int{{longestFunction, "bot"}: n} }
	for _, c := range []struct {
		ceilings, numbers map[counted]int
		above, below      string
	}{
		{bot(90), bot(90), "", ""},
		{bot(90), bot(91), "function-lines of bot: 91, and the ceiling in ceilings.txt is 90:\n\tbot/x.go:1", ""},
		{bot(90), bot(89), "", "function-lines of bot: 89, below its ceiling of 90; go test ./internal/archtest " +
			"-update lowers it"},
		{bot(90), bot(60), "", "function-lines of bot: 60 reaches the goal; go test ./internal/archtest -update " +
			"removes its line"},
		{bot(90), nil, "", "function-lines of bot: 0 reaches the goal; go test ./internal/archtest -update " +
			"removes its line"},
		{nil, bot(60), "", ""},
		{nil, bot(61), "function-lines of bot: 61, and the goal is 60:\n\tbot/x.go:1", ""},
	} {
		places := map[counted][]string{{longestFunction, "bot"}: {"bot/x.go:1"}}
		above, below := compare(c.ceilings, &measurement{c.numbers, places})
		if strings.Join(above, "\n") != c.above || strings.Join(below, "\n") != c.below {
			t.Errorf("%v against %v: %q and %q, want %q and %q", c.numbers, c.ceilings, above, below, c.above, c.below)
		}
	}
}

func TestUpdateOnlyLowers(t *testing.T) {
	number := func(place string) counted { return counted{longestFunction, place} }
	got := lowered(
		map[counted]int{number("a"): 90, number("b"): 90, number("c"): 90, number("d"): 90},
		map[counted]int{number("a"): 99, number("b"): 75, number("c"): 60, number("e"): 99})
	if want := (map[counted]int{number("a"): 90, number("b"): 75}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	back, err := parseCeilings(formatCeilings(got))
	if err != nil || !maps.Equal(back, got) {
		t.Errorf("written and read again: %v, %v; want %v", back, err, got)
	}
}

func TestTheLowestOfTwoCeilingsCounts(t *testing.T) {
	for _, text := range []string{"tokens bot 30\ntokens bot 31", "tokens bot 31\ntokens bot 30"} {
		if got, err := parseCeilings(text); err != nil || !maps.Equal(got, map[counted]int{{tokens, "bot"}: 30}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestCeilingsThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"tokens bot", "tokens bot many", "chairs bot 3"} {
		if got, err := parseCeilings(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}
