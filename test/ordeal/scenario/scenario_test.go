package scenario

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/internal/sim/script"
)

const example = `seed 42
agents claude codex
language owner de
set queue.max "3"
chat lab forum red blue

owner says p1: text 60 every 20ms; run for 5s; write a.txt
ann says in lab/red to p1 p2: ask; text 10
owner sends 3 photo with p3: think 4
owner edits p1 into p4: fail 429 times 2
owner presses old approval.allow-once of p2
mallory presses button 12 in lab
owner types "/cwd \"x\"\n" in lab
owner schedules p5 every 1h: break crash
owner schedules p6 after 2m:
telegram 429-unseen for 30s at sendMessage after 2 times 3
crash at call 3 for 5s
power
clock jumps -1h
in lab/red closes
kill agent of p1
settle
`

func TestTextAndScenarioAreOne(t *testing.T) {
	s, err := Parse(example)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.String(); got != example {
		t.Errorf("got\n%s\nwant\n%s", got, example)
	}
	want := Say{By: Ann, In: "lab/red", ReplyTo: "p1", Prompt: Prompt{"p2", []Act{Ask{}, Text{Words: 10}}}}
	if !reflect.DeepEqual(s.Steps[1], want) {
		t.Errorf("got %#v, want %#v", s.Steps[1], want)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := Generate(rapid.Uint64().Draw(t, "seed"), Profile{Agents: []string{"claude", "codex", "gemini"}})
		again, err := Parse(s.String())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%v\n%s\nbecomes\n%s", err, s, again)
		}
	})
}

func TestWhatIsNoScenario(t *testing.T) {
	for line, want := range map[string]string{
		"owner says p1: dance":              "dance",
		"nobody says p1: run":               "none of crash",
		"owner presses any.thing of p1":     "none of approval.allow-once",
		"wait long":                         "no duration",
		"owner says p1: run;":               "missing behind",
		"owner types /new":                  "no text between quotes",
		"wait 1s 2s":                        "too much",
		"telegram 429 times 0":              "is nothing",
		"owner sends -1 photo with p1: run": "no number",
	} {
		_, err := Parse("seed 1\n" + line)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%v\n%s\nbecomes\n%s", err, s, again)
		}
	})
}

// Generated scenarios contain every form of the language, every act and every value of the enumerations.
func TestGeneratedScenariosHaveEverything(t *testing.T) {
	var text strings.Builder
	found := map[reflect.Type]bool{}
	for seed := range uint64(1500) {
		s := Generate(seed, Profile{Agents: []string{"claude", "codex"}})
		if again := Generate(seed, Profile{Agents: []string{"claude", "codex"}}); !reflect.DeepEqual(s, again) {
			t.Fatalf("seed %d is not the same twice", seed)
		}
		text.WriteString(s.String())
		for _, step := range s.Steps {
			found[reflect.TypeOf(step)] = true
			if p, ok := PromptOf(step); ok {
				for _, act := range p.Acts {
					found[reflect.TypeOf(act)] = true
				}
			}
		}
	}
	for _, f := range append(steps(), acts()...) {
		if !found[reflect.TypeOf(f.of)] {
			t.Errorf("no scenario has %T", f.of)
		}
		for field := range reflect.TypeOf(f.of).Fields() {
			e, ok := reflect.Zero(field.Type).Interface().(interface{ values() []string })
			for _, v := range valuesOf(e, ok) {
				if !strings.Contains(text.String(), v) {
					t.Errorf("no scenario has %s %q", field.Type, v)
				}
			}
		}
	}
}

func valuesOf(e interface{ values() []string }, ok bool) []string {
	if !ok {
		return nil
	}
	return e.values()
}

func TestProfiles(t *testing.T) {
	for seed := range uint64(200) {
		for _, step := range Generate(seed, Profile{Steps: 20, Calm: true}).Steps {
			if IsFault(step) {
				t.Fatalf("seed %d has %v", seed, step)
			}
		}
		s := Generate(seed, Profile{Without: []string{"power", "wait"}})
		for _, step := range s.Steps {
			if k := Kind(step); k == "power" || k == "wait" {
				t.Fatalf("seed %d has %v", seed, step)
			}
		}
	}
}

// The directives of a prompt correspond to its acts.
func TestScriptOfAPrompt(t *testing.T) {
	p := Prompt{"p7", []Act{Text{Words: 2}, Run{For: time.Second}, Ask{}, Write{"a.txt"},
		Text{Words: 1, Every: time.Millisecond}, Leak{},
		Cost{3}, Fail{429, 2}, Break{Hangs}, Background{time.Second}, Question{"So?"}, Compact{}, Think{3},
		Sleep{time.Second}}}
	read := script.Parse(p.Script(func(name string) string { return "echo " + name }))
	want := map[int]script.Step{
		0:  script.Text{Chunks: []string{"p7w0 p7w", "1 "}},
		1:  script.Tool{Command: "echo p7.1; sleep 1"},
		2:  script.Tool{Command: "echo p7.2", Ask: true},
		3:  script.Write{Path: "a.txt", Body: "p7.3\n"},
		4:  script.Text{Chunks: []string{"p7w2 "}, Delay: time.Millisecond},
		6:  script.Usage{Cost: 0.03, Input: 10, Output: 5},
		8:  script.Hang{},
		13: script.Sleep{For: time.Second},
	}
	for i, step := range want {
		if !reflect.DeepEqual(read.Steps[i], step) {
			t.Errorf("act %d: %#v, want %#v", i, read.Steps[i], step)
		}
	}
	if len(read.Steps) != len(p.Acts) || read.Plain != "p7" {
		t.Errorf("%d steps of %d, plain %q", len(read.Steps), len(p.Acts), read.Plain)
	}
	if got := strings.Join(p.Words(), " "); got != "p7w0 p7w1 p7w2" {
		t.Errorf("words %s", got)
	}
	if got := strings.Join(p.Effects(), " "); got != "p7.1 p7.2 p7.3 p7.9" {
		t.Errorf("effects %s", got)
	}
	for seed := range uint64(300) {
		for _, p := range Generate(seed, Profile{}).Prompts() {
			if s := script.Parse(p.Script(func(string) string { return "true" })); len(s.Steps) != len(p.Acts) &&
				!s.Default || strings.Contains(s.Plain, "[[") {
				t.Errorf("%v became %v", p, s)
			}
		}
	}
}

func TestButtonsAreInTheCatalogue(t *testing.T) {
	for _, name := range Button("").values() {
		if Button(name).Is(name) {
			t.Errorf("%s is not in the catalogue", name)
		}
	}
	if !AllowOnce.Is("✅ Allow once") || AllowOnce.Is("⛔ Deny") {
		t.Error("labels are not recognized")
	}
}

// The failing condition is a crash after a prompt that writes. Only these two steps remain.
func TestShrink(t *testing.T) {
	fails := func(s Scenario) bool {
		written := false
		for _, step := range s.Steps {
			if p, ok := PromptOf(step); ok {
				for _, act := range p.Acts {
					_, is := act.(Write)
					written = written || is
				}
			}
			if stop, ok := step.(Stop); ok && stop.How == Crash && written {
				return true
			}
		}
		return false
	}
	shrunk := 0
	for seed := range uint64(120) {
		s := Generate(seed, Profile{Agents: []string{"claude", "codex"}})
		small := Shrink(s, fails)
		if !fails(s) {
			if !reflect.DeepEqual(small, s) {
				t.Errorf("seed %d changed", seed)
			}
			continue
		}
		shrunk++
		if again := Shrink(s, fails); !reflect.DeepEqual(again, small) {
			t.Errorf("seed %d shrinks differently each time", seed)
		}
		if p, _ := PromptOf(small.Steps[0]); len(small.Steps) != 2 || len(p.Acts) != 1 || len(small.Options.Chats) > 0 {
			t.Errorf("seed %d shrinks to\n%s", seed, small)
		}
	}
	if shrunk < 10 {
		t.Errorf("only %d scenarios failed", shrunk)
	}
}
