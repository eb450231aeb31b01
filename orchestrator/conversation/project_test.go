package conversation_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
)

// programs returns settings of a project that start a program.
func programs(command string) []cli.Field {
	return []cli.Field{{Name: ".mcp.json: mcpServers.x.command", Value: command}}
}

// inProject opens a house whose conversations work in a project with these settings.
func inProject(t *testing.T, fields []cli.Field) *house {
	t.Helper()
	h := open(t)
	h.agent.fields = fields
	return h
}

// project returns the project settings of the last request.
func (h *house) project() cli.ProjectSettings { return h.last().Project }

func TestAProjectWithoutSettingsIsNotAskedAbout(t *testing.T) {
	h := inProject(t, nil)
	h.submit(t, here, "go")
	h.await(t, "done go")
	if len(h.board.all()) != 0 || h.project() != cli.EmptyProject {
		t.Errorf("asked %q, ran %q", h.board.states(), h.project())
	}
}

func TestTheSettingsOfAProjectAreUsedOnceAllowed(t *testing.T) {
	h := inProject(t, programs("make"))
	h.submit(t, here, "first")
	a := h.awaitApproval(t, h.root(t))
	if len(h.agent.requests()) != 0 {
		t.Fatal("the agent starts before the settings are decided on")
	}
	h.decide(t, a, orchestrator.Verdict{Choice: orchestrator.AllowPattern})
	h.await(t, "done first")
	if h.project() != cli.WithProject {
		t.Error("the agent starts without what was allowed")
	}
	h.submit(t, here, "second")
	h.await(t, "done second")
	if n := len(h.board.all()); n != 1 || h.project() != cli.WithProject {
		t.Errorf("the same settings: asked %d times, ran %q", n, h.project())
	}

	h.agent.setFields(append(programs("rm -rf /"), cli.Field{Name: ".mcp.json: x", Value: "1"}))
	h.submit(t, here, "third")
	changed := h.awaitApproval(t, h.root(t))
	isLabel := func(f cli.Field) bool { return f.Name == cli.ChangedSettings }
	label := cli.Field{Name: cli.ChangedSettings, Weight: cli.LabelField,
		Value: ".mcp.json: mcpServers.x.command, .mcp.json: x"}
	if !slices.Contains(changed.Request.Fields, label) || slices.ContainsFunc(a.Request.Fields, isLabel) {
		t.Errorf("the questions have the fields %v and %v", a.Request.Fields, changed.Request.Fields)
	}
	h.decide(t, changed, orchestrator.Verdict{Choice: orchestrator.Deny})
	h.await(t, "done third")
	if h.project() != cli.WithoutProject {
		t.Error("changed settings are used although they were denied")
	}
	h.submit(t, here, "fourth")
	h.await(t, "done fourth")
	if n := len(h.board.all()); n != 2 || h.project() != cli.WithoutProject {
		t.Errorf("what was denied in this session: asked %d times, ran %q", n, h.project())
	}
}

// A card shows a skill of the project only if the turn uses the project's settings. Helpers never use them.
func TestASkillOfAProjectIsShownWithItsSettings(t *testing.T) {
	h := inProject(t, programs("make"))
	skill := cli.ApprovalAsked{ID: "1", Tool: "Skill", Title: "deploy"}
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if lastLine(req.Prompt) == "ask a helper" {
			if _, err := h.AskFor(ctx, req.Turn, orchestrator.Helper{Agent: who}, skill); err != nil {
				t.Error(err)
			}
		} else {
			h.agent.request(ctx, emit, skill)
		}
		return echo(ctx, who, req, emit)
	}
	for _, c := range []struct {
		prompt, shows string
		settings      orchestrator.Choice
	}{
		{"without", "project: ", orchestrator.Deny}, {"with", "project: allowed", orchestrator.AllowPattern},
		{"again with", "project: allowed", ""}, {"ask a helper", "project: ", ""},
	} {
		if c.settings != "" {
			if err := h.New(t.Context(), here); err != nil {
				t.Fatal(err)
			}
		}
		h.submit(t, here, c.prompt)
		if c.settings != "" {
			h.decide(t, h.awaitApproval(t, h.root(t)), orchestrator.Verdict{Choice: c.settings})
		}
		a := h.awaitApproval(t, "deploy")
		if a.Request.Detail != c.shows {
			t.Errorf("%s: the card shows %q", c.prompt, a.Request.Detail)
		}
		h.decide(t, a, orchestrator.Verdict{Choice: orchestrator.Deny})
		h.await(t, "done "+c.prompt)
	}
}

func TestARevokedRuleHasTheSettingsOfAProjectAskedAboutAgain(t *testing.T) {
	h := inProject(t, programs("make"))
	h.submit(t, here, "first")
	h.decide(t, h.awaitApproval(t, h.root(t)), orchestrator.Verdict{Choice: orchestrator.AllowPattern})
	h.await(t, "done first")
	p, err := h.Permissions(t.Context(), here)
	if err != nil || len(p.Rules) != 1 {
		t.Fatalf("the rules are %+v, %v", p.Rules, err)
	}
	if err := h.Revoke(t.Context(), p.Rules[0].ID, by(owner, here)); err != nil {
		t.Fatal(err)
	}
	h.submit(t, here, "second")
	h.decide(t, h.awaitApproval(t, h.root(t)), orchestrator.Verdict{Choice: orchestrator.Deny})
	h.await(t, "done second")
	if h.project() != cli.WithoutProject {
		t.Error("the settings are used after their rule was revoked")
	}
}

func TestAnAbortEndsATurnThatWaitsForTheSettingsOfAProject(t *testing.T) {
	h := inProject(t, programs("make"))
	h.agent.reply = untilAborted
	h.submit(t, here, "go")
	h.awaitApproval(t, h.root(t))
	if _, err := h.Abort(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	h.await(t, "aborted go")
	if a := h.board.all()[0]; a.State != orchestrator.ApprovalWithdrawn {
		t.Errorf("the question is %s", a.State)
	}
}

func TestATurnStartsWithoutSettingsThatNobodyDecidedOn(t *testing.T) {
	h := inProject(t, programs("make"))
	h.submit(t, here, "go")
	h.awaitApproval(t, h.root(t))
	h.clock.advance(approval.DefaultTimeout)
	h.clock.ring()
	h.await(t, "done go")
	if h.project() != cli.WithoutProject {
		t.Error("settings that were not decided on are used")
	}
}

func TestUnattendedTurnsNeverUseTheSettingsOfAProject(t *testing.T) {
	root := t.TempDir()
	h := openForOrders(t, filepath.Join(t.TempDir(), "ductor.db"), root)
	h.agent.fields = programs("make")
	h.submit(t, here, "mine")
	h.decide(t, h.awaitApproval(t, root), orchestrator.Verdict{Choice: orchestrator.AllowPattern})
	h.await(t, "done mine")
	for _, of := range []orchestrator.RightsOf{orchestrator.RightsOfJob, orchestrator.RightsOfMember} {
		o := order(string(of), string(of), orchestrator.Wants{})
		o.Prompt.Conversation, o.Prompt.Person, o.Prompt.Rights = here, owner, orchestrator.Rights{Of: of, Mode: cli.Bypass}
		h.order(t, o)
		h.await(t, "done "+string(of))
		if n := len(h.board.all()); n != 1 || h.project() != cli.WithoutProject {
			t.Errorf("%s: asked %d times, ran %q", of, n, h.project())
		}
	}
}

func TestSettingsThatChangedWhileTheyWereAskedAboutAreNotUsed(t *testing.T) {
	h := inProject(t, programs("make"))
	h.submit(t, here, "go")
	a := h.awaitApproval(t, h.root(t))
	h.agent.setFields(programs("rm -rf /"))
	h.decide(t, a, orchestrator.Verdict{Choice: orchestrator.AllowPattern})
	h.await(t, "done go")
	if h.project() != cli.WithoutProject {
		t.Error("settings that no user saw are used")
	}
}
