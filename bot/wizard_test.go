package bot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"

	"pgregory.net/rapid"
)

func menuFixture() []cli.MenuEntry {
	ok := cli.Auth{State: cli.Authenticated}
	var many []cli.Model
	for i := range 20 {
		many = append(many, cli.Model{Agent: "codex", ID: cli.ModelID(fmt.Sprintf("gpt-%02d", i)), Efforts: []cli.Effort{"low", "medium", "high"}, Default: i == 12})
	}
	return []cli.MenuEntry{
		{Agent: "claude", Auth: ok, Models: []cli.Model{
			{Agent: "claude", ID: "opus", Name: "Opus 4", Default: true, Efforts: []cli.Effort{"low", "high"}},
			{Agent: "claude", ID: "sonnet", Name: "Sonnet 4"},
			{Agent: "claude", ID: "sonnet[1m]", Name: "Sonnet 4 with 1M"},
		}},
		{Agent: "codex", Auth: ok, Models: many},
		{Agent: "gemini", Auth: cli.Auth{State: cli.NotFound, Fix: "Install it with npm."}},
		{Agent: "copilot", Auth: ok, Err: errors.New("discovery failed\nwith details")},
	}
}

func TestChooseModelByName(t *testing.T) {
	tests := []struct {
		args    string
		want    choice
		problem string
	}{
		{"opus", choice{"claude", "opus", ""}, ""},
		{"OPUS high", choice{"claude", "opus", "high"}, ""},
		{"claude/opus low", choice{"claude", "opus", "low"}, ""},
		{"claude opus low", choice{"claude", "opus", "low"}, ""},
		{"sonnet", choice{"claude", "sonnet", ""}, ""},
		{"1m", choice{"claude", "sonnet[1m]", ""}, ""},
		{"codex", choice{"codex", "", ""}, ""},
		{"codex default high", choice{"codex", "", "high"}, ""},
		{"codex/gpt-03 medium", choice{"codex", "gpt-03", "medium"}, ""},
		{"gpt-19", choice{"codex", "gpt-19", ""}, ""},
		{"gpt", choice{}, "Several models are called that"},
		{"opus huge", choice{}, "low, high"},
		{"sonnet high", choice{}, "no efforts"},
		{"opus low high", choice{}, "one word too many"},
		{"llama", choice{}, `There is no model "llama"`},
		{"gemini", choice{}, "not installed. Install it with npm."},
		{"copilot/x", choice{}, "discovery failed"},
	}
	for _, tt := range tests {
		got, problem := chooseModel(tt.args, menuFixture(), "claude")
		if tt.problem != "" {
			if !strings.Contains(problem, tt.problem) {
				t.Errorf("/model %s says %q, want %q", tt.args, problem, tt.problem)
			}
			continue
		}
		if got != tt.want || problem != "" {
			t.Errorf("/model %s = %+v, %q; want %+v", tt.args, got, problem, tt.want)
		}
	}
	if _, problem := chooseModel("opus", nil, ""); !strings.Contains(problem, "No agent can be used") {
		t.Errorf("without agents: %q", problem)
	}
}

func TestModelMenuPages(t *testing.T) {
	m := &modelMenu{menuFrame: menuFrame{act: actModel, nonce: "n"}, entries: menuFixture(), agent: -1, model: -1, current: orchestrator.Status{Agent: "codex"}}
	_, keyboard := m.view()
	if names := buttonNames(keyboard); !slices.Equal(names, []string{"claude", "✓ codex", "Close"}) {
		t.Errorf("agents %q", names)
	}
	m.turn(menuOp{'a', 1})
	_, keyboard = m.view()
	if names := buttonNames(keyboard); !slices.Contains(names, "✓ gpt-12") || !slices.Contains(names, "2 of 3") {
		t.Errorf("the page of the model in use is shown first: %q", names)
	}
	m.turn(menuOp{'p', 2})
	_, keyboard = m.view()
	if names := buttonNames(keyboard); !slices.Equal(names, []string{"gpt-16", "gpt-17", "gpt-18", "gpt-19", "‹", "3 of 3", "‹ Back", "Close"}) {
		t.Errorf("last page %q", names)
	}
	m.turn(menuOp{'m', 12})
	_, keyboard = m.view()
	if names := buttonNames(keyboard); !slices.Equal(names, []string{"✓ Default", "low", "medium", "high", "‹ Back", "Close"}) {
		t.Errorf("efforts %q", names)
	}
	m.turn(menuOp{'b', 0})
	m.turn(menuOp{'b', 0})
	if text, _ := m.view(); !strings.Contains(text, "Which agent") || !strings.Contains(text, "copilot: its models cannot be listed: discovery failed") || strings.Contains(text, "with details") {
		t.Errorf("back at the agents: %s", text)
	}
}

func buttonNames(k tgapi.Keyboard) []string {
	var names []string
	for _, row := range k {
		for _, b := range row {
			names = append(names, b.Text)
		}
	}
	return names
}

// "/model" answers at once with what is known; the rest comes by an edit, and no prompt waits for it.
func TestTheModelMenuFillsIn(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.menu, r.desk.menuLoads = menuFixture(), make(chan struct{})
		r.send(r.text("/model"), r.text("a prompt"))
		synctest.Wait()
		l := r.journal.lastLetter(t)
		if names := buttonNames(l.Keyboard); !slices.Equal(names, []string{"✓ claude", "Close"}) || !strings.Contains(l.Text, "codex: its models are being looked up…") {
			t.Errorf("it shows %q with %q", l.Text, names)
		}
		if got := r.desk.Texts(); !slices.Equal(got, []string{"a prompt"}) {
			t.Errorf("the prompt waits: %q", got)
		}
		close(r.desk.menuLoads)
		synctest.Wait()
		if len(r.voice.edits) != 1 {
			t.Fatalf("edits %+v", r.voice.edits)
		}
		if names := buttonNames(r.voice.edits[0].Keyboard); !slices.Equal(names, []string{"✓ claude", "codex", "Close"}) || strings.Contains(r.voice.edits[0].Text, "looked up") {
			t.Errorf("it is filled in with %q, %q", r.voice.edits[0].Text, names)
		}
		r.send(r.press(r.voice.edits[0].Keyboard[1][0].Data, 9))
		synctest.Wait()
		if got := r.voice.edits[len(r.voice.edits)-1].Text; !strings.Contains(got, "Which model of codex?") {
			t.Errorf("a press shows %q", got)
		}
	})
}

func TestASingleUsableAgentIsEnteredAtOnce(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.menu = slices.Delete(menuFixture(), 1, 2)
		r.send(r.text("/model"))
		synctest.Wait()
		if l := r.journal.lastLetter(t); !strings.Contains(l.Text, "Which model of claude?") {
			t.Errorf("letter %q", l.Text)
		}
	})
}

func TestNoUsableAgent(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.menu, r.desk.status.Agent = menuFixture()[2:], ""
		r.send(r.text("/model"))
		synctest.Wait()
		l := r.journal.lastLetter(t)
		if !strings.Contains(l.Text, "No agent can be used yet.") || !strings.Contains(l.Text, "Install it with npm.") {
			t.Errorf("letter %q", l.Text)
		}
	})
}

func TestModelByCommand(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.menu = menuFixture()
		r.send(r.text("/model codex/gpt-03 high"), r.text("/model nonsense"))
		synctest.Wait()
		if calls := r.desk.Calls(); !slices.Equal(calls, []string{"model 7/0 codex/gpt-03 high"}) {
			t.Errorf("calls %q", calls)
		}
		if said := r.journal.said(); len(said) != 2 || said[0] != "From your next message on: codex · gpt-03 · high" || !strings.Contains(said[1], "There is no model") {
			t.Errorf("letters %q", said)
		}
	})
}

func TestStaleAndForeignPresses(t *testing.T) {
	open := func(r *inboundRig) (buttons tgapi.Keyboard) {
		r.desk.menu = menuFixture()
		r.send(r.text("/model"))
		synctest.Wait()
		return r.journal.lastLetter(t).Keyboard
	}
	inGroupChat := func(p map[string]any) map[string]any {
		p["callback_query"].(map[string]any)["message"].(map[string]any)["chat"] = map[string]any{"id": group, "type": "supergroup"}
		return p
	}
	tests := []struct {
		name   string
		press  func(r *inboundRig, k tgapi.Keyboard)
		answer string
	}{
		{"expired", func(r *inboundRig, k tgapi.Keyboard) {
			time.Sleep(menuLife)
			r.send(r.press(k[0][0].Data, 9))
		}, "expired"},
		{"from another conversation", func(r *inboundRig, k tgapi.Keyboard) { r.send(inGroupChat(r.press(k[0][0].Data, 9))) }, render.StaleButton},
		{"pressed twice", func(r *inboundRig, k tgapi.Keyboard) {
			r.send(r.press(k[0][0].Data, 9), r.press(k[1][0].Data, 9))
		}, "already moved on"},
		{"made up", func(r *inboundRig, _ tgapi.Keyboard) { r.send(r.press("w:made:0:m1", 9)) }, "expired"},
		{"an index that is not there", func(r *inboundRig, k tgapi.Keyboard) {
			r.send(r.press(strings.TrimSuffix(k[0][0].Data, "a0")+"a99", 9))
		}, ""},
		{"an agent that cannot be used", func(r *inboundRig, k tgapi.Keyboard) {
			r.send(r.press(strings.TrimSuffix(k[0][0].Data, "a0")+"a2", 9))
		}, ""},
		{"an effort before a model", func(r *inboundRig, k tgapi.Keyboard) {
			r.send(r.press(strings.TrimSuffix(k[0][0].Data, "a0")+"e0", 9))
		}, ""},
		{"close", func(r *inboundRig, k tgapi.Keyboard) { r.send(r.press(k[len(k)-1][0].Data, 9)) }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inbound(t, func(t *testing.T, r *inboundRig) {
				tt.press(r, open(r))
				synctest.Wait()
				if got := r.voice.lastAnswer(); !strings.Contains(got, tt.answer) || tt.answer == "" && got != "" {
					t.Errorf("answer %q, want %q", got, tt.answer)
				}
				if calls := r.desk.Calls(); len(calls) > 0 {
					t.Errorf("something was changed: %q", calls)
				}
			})
		})
	}
}

func TestMenuThatCannotBeStored(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.menu = menuFixture()
		r.send(r.text("/model"))
		synctest.Wait()
		k := r.journal.lastLetter(t).Keyboard
		r.send(r.press(k[0][0].Data, 9))
		synctest.Wait()
		sonnet := r.voice.edits[0].Keyboard[1][0]
		r.desk.fail = errors.New("disk full")
		r.send(r.press(sonnet.Data, 9))
		synctest.Wait()
		if got := r.voice.lastAnswer(); !strings.Contains(got, "did not work") {
			t.Errorf("answer %q", got)
		}
		r.desk.fail = nil
	})
}

// TestEveryButtonFits holds that whatever agents call their models, a menu's buttons are such that Telegram
// takes them, and any walk through the menu ends in a choice that the menu offered.
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
		m := &modelMenu{menuFrame: menuFrame{act: actModel, nonce: "AAAAAAAAAAAA"}, entries: entries, agent: -1, model: -1}
		for step := range 200 {
			m.step = step
			_, keyboard := m.view()
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
			nonce, at, op, ok := parseMenuData(what)
			if !ok || nonce != m.nonce || at != step {
				rt.Fatalf("data %q is not understood", pick.Data)
			}
			state := m.turn(op)
			chosen := m.chosen
			if state == menuDone {
				e := entries[m.agent]
				if !usable(e) || chosen.agent != e.Agent || !slices.ContainsFunc(e.Models, func(o cli.Model) bool { return o.ID == chosen.model }) {
					rt.Fatalf("chosen %+v", chosen)
				}
			}
			if state != menuOpen {
				return
			}
		}
	})
}

func TestOpenMenusAreBounded(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.menu = menuFixture()
		for range menusKept + 50 {
			r.send(r.text("/model"))
			synctest.Wait()
		}
		if n := len(r.callbacks.menus.byID); n > menusKept {
			t.Errorf("%d menus are open", n)
		}
	})
}

func FuzzParseMenuData(f *testing.F) {
	f.Add("n:0:a1")
	f.Add("::")
	f.Add("n:-1:e-1")
	f.Fuzz(func(t *testing.T, what string) {
		m := &modelMenu{entries: menuFixture(), agent: -1, model: -1}
		if _, _, op, ok := parseMenuData(what); ok {
			m.turn(op)
			m.turn(op)
		}
		m.view()
	})
}

func TestSessionsList(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.sessions = []orchestrator.Session{
			{ID: "s1", Title: "Fix the tests", Messages: 3, CostUSD: 0.42, Tokens: 12345, Dir: "/home/u", Used: time.Now().Add(-3 * time.Hour)},
			{ID: "s2", Messages: 1, Dir: "/src", Created: time.Now().Add(-50 * time.Hour)},
		}
		r.desk.status.Session = r.desk.sessions[0]
		r.send(r.text("/sessions"))
		synctest.Wait()
		l := r.journal.lastLetter(t)
		for _, want := range []string{"1. Fix the tests ✓", "3 h 0 min ago, 3 messages, $0.42, 12k tokens, /home/u", "2. (without words)", "2 days ago, 1 message, /src"} {
			if !strings.Contains(l.Text, want) {
				t.Errorf("%q is not in\n%s", want, l.Text)
			}
		}
		r.send(r.press(l.Keyboard[1][0].Data, 9))
		synctest.Wait()
		if calls := r.desk.Calls(); !slices.Equal(calls, []string{"resume 7/0 s2"}) || !strings.Contains(r.voice.lastAnswer(), "(without words)") {
			t.Errorf("calls %q, answer %q", calls, r.voice.lastAnswer())
		}
	})
}

// A sandbox that cannot be had is no agent that is missing.
func TestTheMenuSaysThatASandboxIsNotThere(t *testing.T) {
	gone := &cli.Failure{Kind: cli.NoSandbox, Agent: "claude", Sandbox: "web", Reason: "Docker cannot be reached; start it"}
	got := unusableBecause(cli.MenuEntry{Agent: "claude", Auth: cli.Auth{State: cli.NotFound, Fix: gone.Error()}, Err: gone})
	if want := "The sandbox web of claude is not there: Docker cannot be reached; start it. Nothing runs outside of it."; got != want {
		t.Errorf("it says %q", got)
	}
}
