package script_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ductor/internal/sim/script"
)

func TestDirectivesBecomeSteps(t *testing.T) {
	tests := map[string]struct {
		prompt string
		steps  []script.Step
		plain  string
	}{
		"text is cut every chunk characters": {
			`say [[text "Hé**l**o" delay=5ms chunk=4]] now`,
			[]script.Step{script.Text{Chunks: []string{"Hé**", "l**o"}, Delay: 5 * time.Millisecond}}, "say  now"},
		"generated words": {
			`[[text n=2]]`, []script.Step{script.Text{Chunks: []string{"The ", "quick "}}}, ""},
		"generated chunks of a size": {
			`[[text n=2 size=5 delay=25]]`,
			[]script.Step{script.Text{Chunks: []string{"The q", "uick "}, Delay: 25 * time.Millisecond}}, ""},
		"escapes and brackets in quotes": {
			`[[text "a\n\"]]\\" chunk=99]]`, []script.Step{script.Text{Chunks: []string{"a\n\"]]\\"}}}, ""},
		"a tool, by name or bare": {
			`[[tool cmd="echo hi"]][[tool "ls"]]`,
			[]script.Step{script.Tool{Command: "echo hi"}, script.Tool{Command: "ls"}}, ""},
		"a tool that asks": {
			`[[ask tool=Bash cmd="rm x"]]`, []script.Step{script.Tool{Command: "rm x", Ask: true}}, ""},
		"a file": {
			`[[write path="a.txt" text="x=y"]]`, []script.Step{script.Write{Path: "a.txt", Body: "x=y"}}, ""},
		"an error": {
			`[[error 429 retry_after=1 times=2 delay=5ms]]`,
			[]script.Step{script.APIError{Status: 429, RetryAfter: time.Second, Times: 2, Delay: 5 * time.Millisecond}},
			""},
		"a model that ends its answer": {
			`[[end refusal]][[end reason=unsaid times=2]]`,
			[]script.Step{script.End{Reason: script.EndRefusal}, script.End{Reason: script.EndUnsaid, Times: 2}}, ""},
		"broken agents": {
			`[[hang]][[drop]][[crash code=3]][[silent]][[garbage bytes=7]][[longline 9]][[endlessline]][[ignore-term]][[hold-pipe for=2s]]`,
			[]script.Step{script.Hang{}, script.Drop{}, script.Crash{Code: 3}, script.Silent{},
				script.Garbage{Bytes: 7},
				script.LongLine{Bytes: 9}, script.EndlessLine{}, script.IgnoreTerm{},
				script.HoldPipe{For: 2 * time.Second}}, ""},
		"the rest": {
			`[[compact]][[history]][[sleep 1s]][[think "hm"]][[retry-text "no"]][[usage in=1 out=2 cached=3 cost=0.5]]`,
			[]script.Step{script.Compact{}, script.History{}, script.Sleep{For: time.Second},
				script.Think{Chunks: []string{"hm"}},
				script.RetryText{Chunks: []string{"no"}}, script.Usage{Input: 1, Output: 2, Cached: 3, Cost: 0.5}}, ""},
		"start forgets what came before": {
			`old [[text "a"]] [[start]] new [[text "b"]]`, []script.Step{script.Text{Chunks: []string{"b"}}}, "new"},
		"unknown names and open brackets are text": {
			`if [[ -f x ]]; then [[nope]] [[text "a"]] [[text "b`, []script.Step{script.Text{Chunks: []string{"a"}}},
			`if [[ -f x ]]; then [[nope]]  [[text "b`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := script.Parse(tt.prompt)
			if diff := cmp.Diff(tt.steps, got.Steps); diff != "" {
				t.Error(diff)
			}
			if got.Plain != tt.plain || got.Default {
				t.Errorf("plain %q, default %v", got.Plain, got.Default)
			}
		})
	}
}

func TestMistakesAreSaid(t *testing.T) {
	for prompt, want := range map[string]string{
		`[[tool]]`:                      "cmd is missing",
		`[[text]]`:                      "nothing to say",
		`[[text "a" n=3]]`:              "not both",
		`[[error teapot]]`:              "no number",
		`[[sleep soon]]`:                "no duration",
		`[[text "a" colour=red]]`:       "no option colour",
		`[[hang "a"]]`:                  "one value too many",
		`[[usage cost=much]]`:           "no amount",
		`[[text n=999999 size=999999]]`: "too much",
	} {
		s := script.Parse(prompt)
		if len(s.Steps) != 1 {
			t.Fatalf("%s: %d steps", prompt, len(s.Steps))
		}
		said, ok := s.Steps[0].(script.Text)
		if !ok || !strings.Contains(strings.Join(said.Chunks, ""), want) {
			t.Errorf("%s: %v, want %q in it", prompt, s.Steps[0], want)
		}
	}
}

func TestPromptWithoutDirectivesGetsAFriendlyAnswer(t *testing.T) {
	s := script.Parse("how are you?\nwell?")
	text, ok := s.Steps[0].(script.Text)
	if !s.Default || !ok || len(s.Steps) != 1 {
		t.Fatalf("%+v", s)
	}
	if answer := strings.Join(text.Chunks, ""); !strings.Contains(answer, "> how are you?\n> well?") {
		t.Errorf("the answer does not quote the question: %q", answer)
	}
	if text.Delay == 0 || len(text.Chunks) < 20 {
		t.Errorf("%d chunks, %v apart: not streamed", len(text.Chunks), text.Delay)
	}
}

func TestResponsesEndWithTools(t *testing.T) {
	got := script.Parse(`[[text "a"]][[tool "x"]][[think "b"]][[write path=p text=q]][[usage in=1 out=1]]`).Responses()
	want := [][]script.Step{
		{script.Text{Chunks: []string{"a"}}, script.Tool{Command: "x"}},
		{script.Think{Chunks: []string{"b"}}, script.Write{Path: "p", Body: "q"}},
		{script.Usage{Input: 1, Output: 1, Cost: -1}, script.Done()},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestGeneratedChunksHaveTheirSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, size := rapid.IntRange(0, 300).Draw(t, "n"), rapid.IntRange(1, 200).Draw(t, "size")
		chunks := script.Generated(n, size)
		if len(chunks) != n {
			t.Fatalf("%d chunks, want %d", len(chunks), n)
		}
		for _, c := range chunks {
			if len(c) != size {
				t.Fatalf("chunk %q is %d long, want %d", c, len(c), size)
			}
		}
	})
}

func TestAnyTextSurvivesQuoting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, 50, 400).Draw(t, "text")
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)
		s := script.Parse(`[[text "` + quoted + `" chunk=3]]`)
		if got := strings.Join(s.Steps[0].(script.Text).Chunks, ""); got != text {
			t.Fatalf("%q, want %q", got, text)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "[[", "[[text \"", "[[text=\"a\"]]", "[[error 429 times=]]", "[[sleep =]]",
		"[[[tool \"]]\"]]]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		s := script.Parse(prompt)
		if len(s.Steps) == 0 {
			t.Fatal("no steps: a prompt always gets an answer")
		}
		total := 0
		for _, r := range s.Responses() {
			total += len(r)
		}
		if total < len(s.Steps) {
			t.Fatalf("%d steps in the responses, %d in the script", total, len(s.Steps))
		}
	})
}
