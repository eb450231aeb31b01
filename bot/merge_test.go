package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ductor/bot/updates"
	"ductor/cli"
	"ductor/orchestrator"
)

// longestText is Telegram's limit for one message, in UTF-16 units. Clients split longer texts.
const longestText = 4096

func long(n int, c string) string { return strings.Repeat(c, n) }

func TestSplitPasteBecomesOnePrompt(t *testing.T) {
	a, b, half := long(longestText, "a"), long(4010, "b"), long(longestText/2+1, "c")
	tests := []struct {
		name  string
		parts []string
		want  []string
	}{
		{"cut at the limit", []string{a, "rest"}, []string{a + "rest"}},
		{"cut at a line", []string{b, "rest"}, []string{b + "\nrest"}},
		{"three parts", []string{a, b, "rest"}, []string{a + b + "\nrest"}},
		{"long and nothing after it", []string{a}, []string{a}},
		{"cut at a blank line behind the half", []string{half, "rest"}, []string{half + "\nrest"}},
		{"short ones of the same moment", []string{"one", "two"}, []string{"one\ntwo"}},
		{"slashes inside are text", []string{a, "/etc/hosts"}, []string{a + "/etc/hosts"}},
		{"a command's name inside is text", []string{a, "/new"}, []string{a + "/new"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inbound(t, func(t *testing.T, r *inboundRig) {
				var batch []map[string]any
				for _, p := range tt.parts {
					batch = append(batch, r.text(p))
				}
				r.send(batch...)
				time.Sleep(time.Second)
				r.settle()
				if got := r.desk.Texts(); !slices.Equal(got, tt.want) {
					t.Errorf("%d prompts, want %d", len(got), len(tt.want))
				}
			})
		})
	}
}

func TestPartsThatComeLater(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.send(r.text(long(longestText, "a")))
		time.Sleep(600 * time.Millisecond)
		r.send(r.text("rest"))
		r.settle()
		if got := r.desk.Texts(); len(got) != 1 || !strings.HasSuffix(got[0], "arest") {
			t.Fatalf("%d prompts; within the window the rest belongs to it", len(got))
		}
		if got := r.desk.prompts[0].Updates; !slices.Equal(got, []int64{101, 102}) {
			t.Errorf("updates %v", got)
		}

		r.send(r.text(long(longestText, "b")))
		time.Sleep(800 * time.Millisecond)
		synctest.Wait()
		if got := r.desk.Texts(); len(got) != 2 {
			t.Fatalf("%d prompts; after the window it goes alone", len(got))
		}
	})
}

func TestWhatDoesNotContinueAPaste(t *testing.T) {
	for name, next := range map[string]func(r *inboundRig) map[string]any{
		"of another person": func(r *inboundRig) map[string]any {
			return r.text("x", inGroup(), map[string]any{"from": map[string]any{"id": 8}})
		},
		"written a day later": func(r *inboundRig) map[string]any { return r.text("x", inGroup(), map[string]any{"date": 90000}) },
		"an answer to another": func(r *inboundRig) map[string]any {
			return r.text("x", inGroup(), map[string]any{"quote": map[string]any{"text": "y"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inbound(t, func(t *testing.T, r *inboundRig) {
				r.configure(func(o *updates.RouterOptions) {
					setPolicy(o, func(p *updates.Policy) {
						p.GroupTrigger, p.GroupMembers = updates.TriggerAll, updates.AllMembers
					})
				})
				r.send(r.text(long(longestText, "a"), inGroup()), next(r))
				r.settle()
				if got := r.desk.Texts(); len(got) != 2 {
					t.Errorf("%d prompts, want 2", len(got))
				}
			})
		})
	}
}

func TestACommandEndsTheWaitForMore(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		start := time.Now()
		r.send(r.text(long(longestText, "a")), r.text("/new@ductor_bot"))
		// The command's text could continue the paste, so the command is sent later than a paste's parts.
		r.send(r.text("/new", map[string]any{"date": 1010}))
		synctest.Wait()
		if got := r.desk.Texts(); len(got) != 1 || time.Since(start) > 0 {
			t.Errorf("%d prompts after %s; nothing follows a paste once a command came", len(got), time.Since(start))
		}
		if got := r.desk.Calls(); !slices.Equal(got, []string{"new 7/0"}) {
			t.Errorf("calls %q", got)
		}
	})
}

func TestPasteInAGroupNamesUsOnce(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		mention := map[string]any{"entities": []any{map[string]any{"type": "mention", "offset": 0, "length": 11}}}
		r.send(
			r.text("@ductor_bot "+long(longestText-12, "a"), inGroup(), mention),
			r.text("rest", inGroup()),
			r.text("other talk", inGroup()),
		)
		r.settle()
		if got := r.desk.Texts(); len(got) != 1 || !strings.HasSuffix(got[0], "arest") || strings.HasPrefix(got[0], "@") {
			t.Errorf("%d prompts", len(got))
		}
	})
}

func TestAbortDropsWhatWaitsForMore(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.running = true
		r.send(r.text(long(longestText, "a"), map[string]any{"date": 1}))
		synctest.Wait()
		r.send(r.text("/abort", map[string]any{"date": 9}), r.text("after", map[string]any{"date": 9}))
		synctest.Wait()
		if got := r.desk.Texts(); !slices.Equal(got, []string{"after"}) {
			t.Errorf("prompts %q: what was sent after the abort is new work, what was sent before is not", got)
		}
		if said := r.journal.said(); len(said) != 1 || !strings.Contains(said[0], "1 waiting message will not run") {
			t.Errorf("notices %q", said)
		}
	})
}

func TestAbortWaitsForAPromptThatIsBeingStored(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.hold = make(chan struct{})
		r.send(r.text("being stored"))
		synctest.Wait()
		r.send(r.text("waiting"), r.text("/abort"))
		synctest.Wait()
		if calls := r.desk.Calls(); len(calls) > 0 {
			t.Fatalf("the desk was asked to abort before it had the prompt: %q", calls)
		}
		close(r.desk.hold)
		synctest.Wait()
		if got := r.desk.Texts(); !slices.Equal(got, []string{"being stored"}) {
			t.Errorf("prompts %q", got)
		}
		if calls := r.desk.Calls(); !slices.Equal(calls, []string{"abort 7/0"}) {
			t.Errorf("calls %q", calls)
		}
	})
}

func TestEditOfOnePartKeepsTheOthers(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.ahead = 1
		r.send(r.text(long(longestText, "a")), r.text("rest"))
		r.settle()
		edit := r.text("better")["message"].(map[string]any)
		edit["message_id"] = 502
		r.send(map[string]any{"edited_message": edit})
		r.settle()
		want := fmt.Sprintf("edit 7/0 501 %q", long(longestText, "a")+"better")
		if calls := r.desk.Calls(); len(calls) != 1 || calls[0] != want {
			t.Errorf("calls %.80q, want %.80q", calls, want)
		}
	})
}

// TestNothingIsLostOrDoubled is the law of the inbound side. However messages, commands, parts and pauses mix: every
// update is finished, and every prompt that no abort dropped is submitted once and in order.
func TestNothingIsLostOrDoubled(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"text", "long", "rest", "new", "group", "edit", "pause", "sticker"}), 1, 25).Draw(rt, "steps")
		var problem string
		synctest.Test(t, func(t *testing.T) {
			r := newInboundRig(t)
			r.configure(respondToAll)
			var want strings.Builder
			for i, s := range steps {
				mark := fmt.Sprintf("<%d>", i)
				date := map[string]any{"date": 1000 + i/2}
				switch s {
				case "text":
					want.WriteString(mark)
					r.send(r.text(mark, date))
				case "long":
					want.WriteString(mark)
					r.send(r.text(mark+long(longestText-len(mark), "."), date))
				case "rest":
					want.WriteString(mark)
					r.send(r.text(mark, date))
				case "new":
					r.send(r.text("/status", map[string]any{"date": 5000})) // too late to be a part of a paste
				case "group":
					r.send(r.text("elsewhere", inGroup(), date))
				case "edit":
					r.send(map[string]any{"edited_message": r.text("/x")["message"]})
				case "sticker":
					r.send(r.text("", date, map[string]any{"text": nil, "sticker": map[string]any{}}))
				case "pause":
					time.Sleep(300 * time.Millisecond)
				}
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			r.end()
			var got strings.Builder
			seen := map[int64]bool{}
			for _, p := range r.desk.prompts {
				for _, u := range p.Updates {
					if seen[u] {
						problem = fmt.Sprintf("update %d is in two prompts", u)
					}
					seen[u] = true
				}
				if p.Conversation.Chat == owner {
					got.WriteString(strings.NewReplacer(".", "", "\n", "").Replace(p.Text))
				}
			}
			if got.String() != want.String() {
				problem = fmt.Sprintf("submitted %s, want %s", got.String(), want.String())
			}
			if open := r.journal.Open(); len(open) > 0 {
				problem = fmt.Sprintf("updates %v were not finished", open)
			}
		})
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

func TestAnAbortIsNeverAPartOfAPaste(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.send(r.text(long(longestText, "a")), r.text("/abort"))
		synctest.Wait()
		if got := r.desk.Calls(); !slices.Equal(got, []string{"abort 7/0"}) || len(r.desk.Texts()) > 0 {
			t.Errorf("calls %q, %d prompts", got, len(r.desk.Texts()))
		}
	})
}

// A word aborts a prompt that ductor has received and not begun. Behind a prompt that has ended, it is a prompt itself.
func TestAnAbortWordBehindAPromptThatWaits(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.send(r.text(long(longestText, "a")), r.text("stop"))
		synctest.Wait()
		if got := r.desk.Calls(); !slices.Equal(got, []string{"abort 7/0"}) || len(r.desk.Texts()) > 0 {
			t.Errorf("calls %q, %d prompts", got, len(r.desk.Texts()))
		}
		r.send(r.text("stop."))
		r.settle()
		if got := r.desk.Calls(); len(got) != 2 || len(r.desk.Texts()) > 0 {
			t.Errorf("calls %q, prompts %q after a second word", got, r.desk.Texts())
		}
		time.Sleep(10 * time.Second)
		r.send(r.text("stop"))
		r.settle()
		if got := r.desk.Texts(); !slices.Equal(got, []string{"stop"}) {
			t.Errorf("prompts %q", got)
		}
	})
}

// A waiting message that the user changes to an abort word is not sent to the agent.
func TestAMessageIsChangedToAnAbortWord(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.running = true
		edited := r.text("work")
		r.send(edited)
		r.settle()
		edited["message"].(map[string]any)["text"] = "stop"
		r.send(map[string]any{"edited_message": edited["message"]})
		r.settle()
		if got := r.desk.Calls(); !slices.Contains(got, "abort 7/0") || slices.Contains(r.desk.Texts(), "stop") {
			t.Errorf("calls %q, prompts %q", got, r.desk.Texts())
		}
	})
}

func TestQueuesStopInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInboundRig(t)
		r.desk.hold = make(chan struct{}) // a store that never answers
		r.send(r.text("stuck"))
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		r.Router.Stop(ctx)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("the stop took %s, want its deadline", took)
		}
	})
}

// A name before a message asks that model once. A name that no agent or model has is text.
func TestAMessageToAnotherModel(t *testing.T) {
	for said, want := range map[string]string{
		"@codex why is it slow?":       "why is it slow? to codex//",
		"@Opus\n\nlook":                "look to claude/opus/",
		"@fast go":                     "go to claude/opus/high",
		"@types/node is missing":       "@types/node is missing to //",
		"@gpt is ambiguous":            "@gpt is ambiguous to //",
		"@codex":                       "@codex to //",
		"mail codex@example.org about": "mail codex@example.org about to //",
	} {
		inbound(t, func(t *testing.T, r *inboundRig) {
			ok := cli.Auth{State: cli.Authenticated}
			r.desk.menu = []cli.MenuEntry{
				{Agent: "claude", Auth: ok, Models: []cli.Model{{ID: "opus", Efforts: []cli.Effort{"high"}}}},
				{Agent: "codex", Auth: ok, Models: []cli.Model{{ID: "gpt-5"}, {ID: "gpt-6"}}},
			}
			r.send(r.text(said))
			synctest.Wait()
			got := ""
			for i, p := range r.desk.prompts {
				w := r.desk.wants[i]
				got += fmt.Sprintf("%s to %s/%s/%s", p.Text, w.Agent, w.Model, w.Effort)
			}
			if got != want {
				t.Errorf("%q is asked as %q, want %q", said, got, want)
			}
		})
	}
}

// Prompts and commands wait behind a prompt that a full disk delayed. Then they run in their order, each once. An abort
// drops the prompts before it, and not those behind it.
func TestAFullDiskChangesNoOrder(t *testing.T) {
	for name, c := range map[string]struct {
		sent         []string // on the full disk
		before, then []string // prompts before and behind /new
	}{
		"no abort": {nil, []string{"first", "second"}, []string{"third"}},
		"an abort": {[]string{"/abort", "fourth"}, nil, []string{"fourth"}},
	} {
		inbound(t, func(t *testing.T, r *inboundRig) {
			r.journal.SetDisk(orchestrator.DiskFull)
			r.desk.fail, r.desk.holdNew = orchestrator.ErrDiskFull, make(chan struct{})
			send := func(texts ...string) {
				for _, text := range texts {
					r.send(r.text(text))
					r.settle()
				}
			}
			send("first", "second", "/new", "third")
			r.desk.fail = nil
			send(c.sent...)
			ran := func(want []string) {
				t.Helper()
				r.settle()
				if got := r.desk.Texts(); !slices.Equal(got, want) {
					t.Errorf("%s: %q ran, want %q", name, got, want)
				}
			}
			time.Sleep(time.Hour)
			ran(nil)
			r.journal.SetDisk(orchestrator.DiskWorks)
			ran(c.before)
			close(r.desk.holdNew)
			ran(slices.Concat(c.before, c.then))
			if open := r.journal.Open(); len(open) > 0 {
				t.Errorf("%s: these updates are not handled: %v", name, open)
			}
		})
	}
}

// A prompt that cannot be stored although the disk works is refused after some tries. What waits behind it goes on.
func TestAPromptThatAWorkingDiskRejects(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.fail = orchestrator.ErrDiskFailed
		r.send(r.text("first"))
		r.send(r.text("/new"))
		r.settle()
		time.Sleep(time.Minute)
		synctest.Wait()
		r.desk.fail = nil
		r.send(r.text("second"))
		r.settle()
		if got := r.desk.Texts(); !slices.Equal(got, []string{"second"}) {
			t.Errorf("%q ran", got)
		}
		if !slices.ContainsFunc(r.journal.said(), func(text string) bool {
			return strings.Contains(text, "I couldn't save this message")
		}) {
			t.Errorf("the chat shows %q", r.journal.said())
		}
	})
}

// A prompt that waits for a full disk does not delay the end of ductor. The next process handles it.
func TestDuctorStopsWhileAPromptWaitsForTheDisk(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.journal.SetDisk(orchestrator.DiskFull)
		r.desk.fail = orchestrator.ErrDiskFull
		r.send(r.text("first"))
		r.settle()
		before := time.Now()
		r.end()
		if open := r.journal.Open(); time.Since(before) > 0 || len(open) != 1 {
			t.Errorf("stopped after %s, with the updates %v", time.Since(before), open)
		}
		r.journal.Handle([]int64{101})
	})
}

// If a full disk keeps the refusal of a prompt from being stored, the whole prompt is handled again, and then it may run.
func TestARefusalThatCouldNotBeStored(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.menu = []cli.MenuEntry{{Agent: "claude", Auth: cli.Auth{State: cli.Authenticated},
			Models: []cli.Model{{ID: "opus"}}}}
		r.desk.hold, r.desk.full = make(chan struct{}), true
		r.send(r.text("@opus it"))
		r.settle()
		r.journal.SetDisk(orchestrator.DiskFull)
		r.journal.Fail(orchestrator.ErrDiskFull)
		close(r.desk.hold)
		r.settle()
		r.desk.full = false
		r.journal.Fail(nil)
		r.journal.SetDisk(orchestrator.DiskWorks)
		r.settle()
		if got := r.desk.Texts(); !slices.Equal(got, []string{"it"}) || r.desk.wants[0].Model != "opus" {
			t.Errorf("%q ran, with %+v", got, r.desk.wants)
		}
	})
}
