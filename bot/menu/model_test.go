package menu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/cli/naming"
	"ductor/lang"
	"ductor/orchestrator"

	"pgregory.net/rapid"
)

// The chat explains why a name cannot be chosen.
func TestNamesThatAreNoChoice(t *testing.T) {
	for name, want := range map[string]string{
		"gpt":           "Several models have that name",
		"opus huge":     "low, high",
		"sonnet high":   "no effort levels",
		"opus low high": "one word too many",
		"llama":         `There is no model "llama". There are: claude/opus`,
		"sonet":         `There is no model "sonet". Did you mean sonnet?`,
		"gemini-9-pro":  "gemini-9-pro is a model that Gemini runs, and Gemini can't be used here",
		"gemini":        "not installed. Install it with npm.",
		"copilot/x":     "discovery failed",
	} {
		_, problem := naming.Names{Entries: menuFixture(), Current: "claude"}.Find(name)
		if problem == nil {
			t.Errorf("%s is a choice", name)
		} else if got := whyNot(lang.Printer{}, problem); !strings.Contains(got, want) {
			t.Errorf("/model %s says %q, want %q", name, got, want)
		}
	}
	_, problem := naming.Names{}.Find("opus")
	if got := whyNot(lang.Printer{}, problem); !strings.Contains(got, "no model to choose") {
		t.Errorf("without agents: %q", got)
	}
}

func TestModelMenuPages(t *testing.T) {
	m := &modelMenu{frame: frame{action: ModelAction, nonce: "n"}, entries: menuFixture(), agent: -1, model: -1, current: orchestrator.Status{Agent: "codex"}}
	keyboard := m.view().Keyboard
	if names := buttonNames(keyboard); !slices.Equal(names, []string{"Claude", "✓ Codex", "Close"}) {
		t.Errorf("agents %q", names)
	}
	m.press(op{'a', 1})
	keyboard = m.view().Keyboard
	if names := buttonNames(keyboard); !slices.Contains(names, "✓ gpt-12") || !slices.Contains(names, "2 of 3") {
		t.Errorf("the page of the model in use is shown first: %q", names)
	}
	m.press(op{'p', 2})
	keyboard = m.view().Keyboard
	if names := buttonNames(keyboard); !slices.Equal(names, []string{"gpt-16", "gpt-17", "gpt-18", "gpt-19", "‹", "3 of 3", "‹ Back", "Close"}) {
		t.Errorf("last page %q", names)
	}
	m.press(op{'m', 12})
	keyboard = m.view().Keyboard
	if names := buttonNames(keyboard); !slices.Equal(names, []string{"✓ Default", "low", "medium", "high", "‹ Back", "Close"}) {
		t.Errorf("efforts %q", names)
	}
	m.press(op{'b', 0})
	m.press(op{'b', 0})
	if text := m.view().Text; !strings.Contains(text, "Which agent") || !strings.Contains(text, "Copilot: its models can't be listed: discovery failed") || strings.Contains(text, "with details") {
		t.Errorf("back at the agents: %s", text)
	}
}

func TestASingleUsableAgentIsEnteredAtOnce(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		r.service.entries = slices.Delete(menuFixture(), 1, 2)
		r.command("/model")
		if l := r.page; !strings.Contains(l.Text, "Which model of Claude?") {
			t.Errorf("it shows %q", l.Text)
		}
	})
}

func TestNoUsableAgent(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		r.service.entries, r.service.status.Agent = menuFixture()[2:], ""
		r.command("/model")
		l := r.page
		if !strings.Contains(l.Text, "No agent can be used yet.") || !strings.Contains(l.Text, "Install it with npm.") {
			t.Errorf("it shows %q", l.Text)
		}
	})
}

// An agent that lists no models answers with its default model, or with each model that the user names.
func TestALoggedInAgentWithoutModels(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		r.service.entries = menuFixture()[:1]
		r.service.entries[0].Models = nil
		r.command("/model")
		if l := r.page.Text; strings.Contains(l, "No agent") || !strings.Contains(l, "Claude: it lists no models.") {
			t.Errorf("it shows %q", l)
		}
		r.offers.Known = func(id string) (NewAgent, bool) { return NewAgent{ID: id}, id == "opencode" }
		for _, name := range []string{"claude/opus high", "opus", "default", "opencode"} {
			r.command("/model " + name)
			if l := r.page.Text; strings.HasPrefix(l, "Your next message goes to Claude") !=
				strings.HasSuffix(l, "I couldn't check this with Claude: it lists no models.") {
				t.Errorf("%s is answered with %q", name, l)
			}
		}
		want := []string{"model 7/0 claude/opus high", "model 7/0 claude/opus ", "model 7/0 claude/ "}
		if !slices.Equal(r.service.calls, want) {
			t.Errorf("calls %q", r.service.calls)
		}
	})
}

// The name of an agent that ductor knows but does not use leads to the command that adds it.
func TestModelWithTheNameOfAnUnusedAgent(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		r.service.entries = menuFixture()
		r.offers.Known = func(id string) (NewAgent, bool) {
			return NewAgent{ID: "opencode", Name: "OpenCode"}, id == "opencode"
		}
		r.command("/model OpenCode")
		if l := r.page.Text; !strings.Contains(l, "ductor agents add opencode") {
			t.Errorf("it says %q", l)
		}
		r.command("/model nonsense")
		if l := r.page.Text; !strings.Contains(l, "There is no model") {
			t.Errorf("another name is answered with %q", l)
		}
	})
}

func TestModelByCommand(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		r.service.entries = menuFixture()
		r.command("/model codex/gpt-03 high")
		chosen := r.page.Text
		r.command("/model nonsense")
		if calls := r.service.calls; !slices.Equal(calls, []string{"model 7/0 codex/gpt-03 high"}) {
			t.Errorf("calls %q", calls)
		}
		if problem := r.page.Text; chosen != "Your next message goes to Codex · gpt-03 · high." || !strings.Contains(problem, "There is no model") {
			t.Errorf("it says %q and %q", chosen, problem)
		}
	})
}

// The answer counts the waiting messages that the choice changes. Messages with an agent of their own are none of them.
func TestTheChoiceNamesTheWaitingMessagesThatFollowIt(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		r.service.entries = menuFixture()
		own := orchestrator.Wants{Agent: "claude"}
		for want, queue := range map[string][]orchestrator.Wants{
			"Your next message goes to Codex · gpt-03 · high.":             {own},
			"Your next message and 2 waiting go to Codex · gpt-03 · high.": {{}, own, {}},
		} {
			r.service.status.Queue = queue
			if r.command("/model codex/gpt-03 high"); r.page.Text != want {
				t.Errorf("it says %q, want %q", r.page.Text, want)
			}
		}
	})
}

func TestStaleAndForeignPresses(t *testing.T) {
	open := func(r *rig) (buttons tgapi.Keyboard) {
		r.service.entries = menuFixture()
		r.command("/model")
		return r.page.Keyboard
	}
	tests := []struct {
		name   string
		press  func(r *rig, k tgapi.Keyboard)
		answer string
	}{
		{"expired", func(r *rig, k tgapi.Keyboard) {
			time.Sleep(life)
			r.press(k[0][0].Data)
		}, "expired"},
		{"from another conversation", func(r *rig, k tgapi.Keyboard) { r.pressIn(group, k[0][0].Data) }, lang.Printer{}.Text("common.stale-button")},
		{"pressed twice", func(r *rig, k tgapi.Keyboard) {
			r.press(k[0][0].Data)
			r.press(k[1][0].Data)
		}, "The menu has changed"},
		{"made up", func(r *rig, _ tgapi.Keyboard) { r.press("w:made:0:m1") }, "expired"},
		{"an index that is not there", func(r *rig, k tgapi.Keyboard) {
			r.press(strings.TrimSuffix(k[0][0].Data, "a0") + "a99")
		}, ""},
		{"an agent that cannot be used", func(r *rig, k tgapi.Keyboard) {
			r.press(strings.TrimSuffix(k[0][0].Data, "a0") + "a2")
		}, ""},
		{"an effort before a model", func(r *rig, k tgapi.Keyboard) {
			r.press(strings.TrimSuffix(k[0][0].Data, "a0") + "e0")
		}, ""},
		{"close", func(r *rig, k tgapi.Keyboard) { r.press(k[len(k)-1][0].Data) }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			withMenus(t, func(t *testing.T, r *rig) {
				tt.press(r, open(r))
				if got := r.answer(); !strings.Contains(got, tt.answer) || tt.answer == "" && got != "" {
					t.Errorf("answer %q, want %q", got, tt.answer)
				}
				if calls := r.service.calls; len(calls) > 0 {
					t.Errorf("something was changed: %q", calls)
				}
				if want := strings.Contains(tt.answer, "expired"); want != (r.expired == 1) {
					t.Errorf("%d presses took buttons away", r.expired)
				}
			})
		})
	}
}

func TestMenuThatCannotBeStored(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		r.service.entries = menuFixture()
		r.command("/model")
		k := r.page.Keyboard
		r.press(k[0][0].Data)
		sonnet := r.edits[0].Keyboard[1][0]
		r.service.fail = errors.New("disk full")
		r.press(sonnet.Data)
		if !errors.Is(r.err, r.service.fail) || !strings.Contains(r.edit().Text, "nothing changed") {
			t.Errorf("%v, the menu became %+v", r.err, r.edit())
		}
	})
}

// Whatever agents call their models, Telegram accepts the buttons of a menu, and any walk through the menu ends in a
// choice that the menu offered.
func TestEveryButtonFits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var models []cli.Model
		for range rapid.IntRange(1, 40).Draw(rt, "models") {
			models = append(models, cli.Model{
				ID:      cli.ModelID(rapid.StringN(1, 200, -1).Draw(rt, "id")),
				Efforts: rapid.SliceOfN(rapid.SampledFrom([]cli.Effort{"low", "high", "xhigh"}), 0, 3).Draw(rt, "efforts"),
			})
		}
		entries := append(menuFixture(), cli.MenuEntry{Agent: "acp", Auth: cli.Auth{State: cli.Authenticated}, Models: models})
		m := &modelMenu{frame: frame{action: ModelAction, nonce: "AAAAAAAAAAAA"}, entries: entries, agent: -1, model: -1}
		for step := range 200 {
			m.step = step
			keyboard := m.view().Keyboard
			var all []tgapi.Button
			for _, row := range keyboard {
				all = append(all, row...)
			}
			for _, b := range all {
				if len(b.Data) > tgapi.DataLimit || b.Text == "" {
					rt.Fatalf("button %+v", b)
				}
			}
			pick := rapid.SampledFrom(all).Draw(rt, "button")
			_, what, _ := strings.Cut(pick.Data, ":")
			nonce, at, op, ok := parseData(what)
			if !ok || nonce != m.nonce || at != step {
				rt.Fatalf("data %q is not understood", pick.Data)
			}
			state := m.press(op)
			chosen := m.chosen
			if state == stateDone {
				e := entries[m.agent]
				if !naming.Usable(e) || chosen.Agent != e.Agent || !slices.ContainsFunc(e.Models, func(o cli.Model) bool { return o.ID == chosen.Model }) {
					rt.Fatalf("chosen %+v", chosen)
				}
			}
			if state != stateOpen {
				return
			}
		}
	})
}

func TestOpenMenusAreBounded(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		r.service.entries = menuFixture()
		for range mostOpen + 50 {
			r.command("/model")
		}
		if n := len(r.byID); n > mostOpen {
			t.Errorf("%d menus are open", n)
		}
	})
}

func FuzzParseData(f *testing.F) {
	f.Add("n:0:a1")
	f.Add("::")
	f.Add("n:-1:e-1")
	f.Fuzz(func(t *testing.T, what string) {
		m := &modelMenu{entries: menuFixture(), agent: -1, model: -1}
		if _, _, op, ok := parseData(what); ok {
			m.press(op)
			m.press(op)
		}
		m.view()
	})
}

// The menu does not describe an unavailable sandbox as a missing agent.
func TestTheMenuSaysThatASandboxIsNotThere(t *testing.T) {
	gone := &cli.Failure{Kind: cli.NoSandbox, Agent: "claude", Sandbox: "web", Reason: "Docker cannot be reached; start it"}
	got := unusableBecause(lang.Printer{}, cli.MenuEntry{Agent: "claude", Auth: cli.Auth{State: cli.NotFound, Fix: gone.Error()}, Err: gone})
	if want := "The sandbox web of Claude is missing: Docker cannot be reached; start it. I run nothing outside of it: `ductor doctor` shows how to fix it."; got != want {
		t.Errorf("it says %q", got)
	}
}

// The reason why models cannot be listed is in English, so only English chats show it.
func TestTheReasonWhyModelsAreNotListed(t *testing.T) {
	why := &cli.Failure{Kind: cli.BadOutput, Agent: "claude", Reason: "it lists no models"}
	e := cli.MenuEntry{Agent: "claude", Err: why}
	for language, shows := range map[lang.Language]bool{"en": true, "de": false, "zh": false} {
		got := unusableBecause(language.Printer(), e)
		if strings.Contains(got, "no models") != shows || !strings.Contains(got, "Claude") {
			t.Errorf("in %s it says %q", language, got)
		}
	}
}

// TestOffersAreForOwners tests that only an owner in a private chat uses up the offer of a new agent.
func TestOffersAreForOwners(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		asked, failure := 0, errors.New("full")
		r.offers = Offers{
			Next: func() []NewAgent { asked++; return []NewAgent{{"opencode", "OpenCode", "opencode"}} },
			Add:  func(context.Context, orchestrator.Press, string) error { return failure },
		}
		offers := func(by orchestrator.Press) (pages []tgapi.Page) {
			r.Offer(by, func(_ context.Context, page tgapi.Page) error { pages = append(pages, page); return nil })
			synctest.Wait()
			return pages
		}
		press := by(owner)
		if pages := offers(press); pages != nil || asked > 0 {
			t.Errorf("a user is offered %v", pages)
		}
		press.Role = orchestrator.RoleOwner
		press.Conversation.Chat = group
		if pages := offers(press); pages != nil || asked > 0 {
			t.Errorf("a group is offered %v", pages)
		}
		press.Conversation.Chat = owner
		pages := offers(press)
		if len(pages) != 1 || !slices.Equal(buttonNames(pages[0].Keyboard), []string{"Add OpenCode", "Not now"}) {
			t.Fatalf("an owner is offered %v", pages)
		}
		_, data, _ := strings.Cut(pages[0].Keyboard[0][0].Data, ":")
		if a, err := r.PressOffer(t.Context(), press, data); err != nil || a.Edit.Text != "" || a.Text == "" {
			t.Errorf("an error becomes %+v, %v", a, err)
		}
		failure = fmt.Errorf("%w: a wrong key", ErrNotLoaded)
		if a, err := r.PressOffer(t.Context(), press, data); err != nil || !strings.Contains(a.Edit.Text, "/reload") {
			t.Errorf("an error elsewhere in the file becomes %+v, %v", a, err)
		}
	})
}
