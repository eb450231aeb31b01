package turn

import (
	"fmt"
	"slices"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
)

// PromptText returns the prompt as the agent gets it. It returns pictures separately, and mentions other files in the
// text.
func PromptText(p orchestrator.Prompt) (string, []cli.Image) {
	var images []cli.Image
	for _, a := range p.Attachments {
		if a.Image {
			images = append(images, cli.Image{Path: a.Path, MIME: a.MIME})
		}
	}
	return p.OnlyText(), images
}

// handOff adds to the prompt the history that the agent has not seen. If the history is too long, the configured model
// summarizes it. If no model is configured, or if the model fails, ductor shortens the history.
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
	// If there is no new history, keep a.handed: it may describe the history of an earlier attempt, which the card does
	// not show yet.
	if told.Turns+told.LeftOut > 0 {
		a.handed = cli.HandedOver{
			To: a.turn.Agent, Model: a.turn.Model, Turns: told.Turns, Tokens: told.Tokens,
			LeftOut: told.Whole(), Shortened: told.Shortened,
		}
	}
	return nil
}

// showHanded shows in the card how much history the agent got with its prompt. The next call shows nothing.
func (a *attempt) showHanded() {
	if a.handed.Turns+a.handed.LeftOut > 0 && a.handed.To == a.turn.Agent {
		a.Events.Show(a.handed)
	}
	a.handed = cli.HandedOver{}
}

// summarize summarizes history with a model. Meanwhile the chat shows that the turn waits for the model. If the model
// fails, summarize returns the shortened history instead.
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

// warnOfTerminals warns the user if a part of the session ran in a terminal and the turn's agent has not seen that
// part. The warning names the agents that have seen it.
func (a *attempt) warnOfTerminals() {
	who := a.turn.AgentEnv()
	for of, has := range a.start.Session.AgentSessions {
		if has.Terminal && of != who {
			text := a.printer().Text("turn.terminal-untold", of.Agent.Name(), who.Agent.Name())
			a.event(cli.Status{Kind: cli.StatusNotice, Detail: text})
		}
	}
}

// addContext adds the project's context files to the prompt if it is the agent's first prompt in the session.
func (a *attempt) addContext() {
	project := a.runner.opts.Project(a.req.Dir)
	text, left := handoff.Context(project.Dir, a.req.Sandbox, project.Context)
	for _, l := range left {
		text := a.printer().Text("turn.context-left-out", l.File, l.Err.Error())
		a.event(cli.Status{Kind: cli.StatusNotice, Detail: text})
	}
	a.req.Prompt = text + a.req.Prompt
}

// missed lists the entries of the session that the prompt must contain as history. If this turn repeats earlier turns,
// missed leaves out the prompts of those turns, and keeps their answers: this turn sends the same prompt again.
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
	return withoutRepeats(a.known.Missed(turns), a.turn.Again), nil
}

// hasAnswered reports whether the agent has answered in the session, in a turn or in a terminal. Answers in a terminal
// count only until the agent starts a new agent session.
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

// withoutRepeats replaces the prompt of the turn with the ID again by handoff.Repeated, because the agent gets this
// prompt now. If that turn repeats an older turn, withoutRepeats replaces the older prompt, too, and so on. It removes
// changed turns without an answer. The turns must be in order.
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
