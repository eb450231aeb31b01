package turn

import (
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
)

// PromptText returns the prompt as the agent reads it. It returns pictures separately, and names other files in the
// text.
func PromptText(p orchestrator.Prompt) (string, []cli.Image) {
	text := p.Text
	var images []cli.Image
	for _, a := range p.Attachments {
		if a.Image {
			images = append(images, cli.Image{Path: a.Path, MIME: a.MIME})
		}
		text += handoff.Attached(a)
	}
	return text, images
}

// handOff adds the history that the agent missed to the prompt. If the history does not fit, the configured model
// summarizes it. Without such a model, or if it fails, ductor shortens the history.
func (a *attempt) handOff() error {
	o := &a.runner.opts
	turns, err := a.missed()
	if err != nil {
		return err
	}
	own := a.known.Own()
	if own.Told == "" && !own.Terminal {
		a.addContext()
	}
	if own.Told == "" {
		a.warnOfTerminals()
	}
	told := handoff.Write(turns, "", o.Settings().HandoffTokens)
	if s := a.summarizer(); s != nil && told.LeftOut > 0 && told.Turns > 0 &&
		(o.Summarizer.Model.Agent != "" || a.turn.Wants.Summarize || s.Has(a.record, a.start.Session.ID)) {
		waits := cli.Status{Kind: cli.StatusWaiting, Detail: a.printer().Text("turn.summarizing", len(turns))}
		told = a.summarize(s, turns, told, waits)
	}
	a.req.Prompt = told.Text + a.req.Prompt
	if told.Turns+told.LeftOut > 0 { // otherwise keep the text of an earlier attempt, which the chat may not show yet
		a.handed = cli.HandedOver{
			To: a.turn.Agent, Model: a.turn.Model, Turns: told.Turns, Tokens: told.Tokens,
			LeftOut: told.Whole(), Shortened: told.Shortened,
		}
	}
	return nil
}

// showHanded shows which history the agent got, once.
func (a *attempt) showHanded() {
	if a.handed.Turns+a.handed.LeftOut > 0 && a.handed.To == a.turn.Agent {
		a.Events.Show(a.handed)
	}
	a.handed = cli.HandedOver{}
}

// summarize lets a model summarize history, and shows that the turn waits for the model. If the model fails, summarize
// returns the parameter otherwise.
func (a *attempt) summarize(
	s *handoff.Summarizer, turns []orchestrator.Turn, otherwise handoff.Told, waits cli.Status,
) handoff.Told {
	a.event(waits)
	summarized, err := s.Write(a.ctx, a.req, a.start.Session.ID, turns, a.runner.opts.Settings().HandoffTokens)
	a.event(cli.Status{Kind: cli.StatusIdle})
	if err != nil {
		a.log().Warn("history is shortened instead of summarized", "session", a.start.Session.ID, "err", err)
		return otherwise
	}
	return summarized
}

// warnOfTerminals warns a user if the next agent does not know the part of the session that ran in a terminal. The
// warning names the agents that know it.
func (a *attempt) warnOfTerminals() {
	who := a.turn.AgentEnv()
	for of, has := range a.start.Session.AgentSessions {
		if has.Terminal && of != who {
			text := a.printer().Text("turn.terminal-untold", of.Agent.Name(), who.Agent.Name())
			a.event(cli.Status{Kind: cli.StatusWarning, Detail: text})
		}
	}
}

// addContext adds the context files of the project to the first prompt of an agent in a session.
func (a *attempt) addContext() {
	project := a.runner.opts.Project(a.req.Dir)
	text, left := handoff.Context(project.Dir, project.Context)
	for _, l := range left {
		text := a.printer().Text("turn.context-left-out", l.File, l.Err.Error())
		a.event(cli.Status{Kind: cli.StatusWarning, Detail: text})
	}
	a.req.Prompt = text + a.req.Prompt
}

// missed lists the entries of the session that the prompt must contain for the agent. If this turn repeats other turns,
// the list has only their answers, because their prompts equal the prompt of this turn.
func (a *attempt) missed() ([]orchestrator.Turn, error) {
	s, own := a.start.Session, a.known.Own()
	if own.Told != "" && a.start.Last == (Last{s.ID, s.Totals.Messages, own.Told}) {
		a.known.KnowsAll(s.Newest)
		return nil, nil
	}
	turns, err := a.runner.opts.Store.EntriesAfter(a.record, s.ID, own.UpTo, handoff.MostMissed)
	if err != nil {
		return nil, fmt.Errorf("load history: %w", err)
	}
	return withoutRepeats(a.known.Missed(turns), repeats(turns, a.turn)), nil
}

// LaterJob is the prefix of the IDs of jobs that run a turn's prompt again after a usage limit has ended. The ID of the
// turn follows.
const LaterJob = "later-"

// repeats returns the turn whose prompt t repeats. It returns "" for a new prompt. The turn of a LaterJob repeats the
// turn in the job's ID, unless a user changed the prompt.
func repeats(turns []orchestrator.Turn, t orchestrator.Turn) cli.TurnID {
	id, later := strings.CutPrefix(string(t.Wants.Job), LaterJob)
	if later && slices.ContainsFunc(turns, func(h orchestrator.Turn) bool {
		return h.ID == cli.TurnID(id) && strings.HasPrefix(t.Prompt.Text, h.Prompt.Text)
	}) {
		return cli.TurnID(id)
	}
	return t.Again
}

// hasAnswered reports whether the agent has answered in the session, or knows the session from a terminal. An agent
// that loses its own session loses the knowledge from the terminal, too.
func (a *attempt) hasAnswered() bool {
	turns, err := a.runner.opts.Store.History(a.record, a.start.Session.ID, handoff.MostMissed)
	if err != nil {
		a.log().Warn("check whether an agent has answered", "session", a.start.Session.ID, "err", err)
	}
	who := a.turn.AgentEnv()
	return a.start.Session.AgentSessions[who].Terminal || slices.ContainsFunc(turns, func(h orchestrator.Turn) bool {
		return h.AgentEnv() == who && h.Outcome.Text != ""
	})
}

// withoutRepeats replaces the prompt of turn again by handoff.Repeated, because the agent is about to get this prompt.
// It does the same for the turn that again repeats, and so on. It removes turns without an answer. turns must be in
// order.
func withoutRepeats(turns []orchestrator.Turn, again cli.TurnID) []orchestrator.Turn {
	for i := len(turns) - 1; i >= 0 && again != ""; i-- {
		if turns[i].ID != again {
			continue
		}
		again = turns[i].Again
		turns[i].Prompt.Text, turns[i].Prompt.Attachments = handoff.Repeated, nil
		if turns[i].Outcome.Text == "" {
			turns = slices.Delete(turns, i, i+1)
		}
	}
	return turns
}
