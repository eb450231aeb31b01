package card

import (
	"cmp"
	"time"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
)

// waitState is the kind of reason why a turn makes no progress at the moment. The last line of a running card shows the
// reason.
type waitState int

const (
	waitQuiet    waitState = iota // the agent is writing text or using a tool; the card shows no waitLine
	waitOpening                   // the agent's process is starting; the card shows no waitLine yet
	waitThinking                  // the agent is running, but has sent nothing for some time
	waitMute                      // the agent has sent nothing for long, and may be repeating a request to its model
	waitStarting                  // the start takes long; waitLine.detail is the reason, if known
	waitFor                       // the turn waits; waitLine.detail is the reason
	waitCompacting
	waitRetrying
	waitPaused // ductor pauses before it repeats the turn; waitLine.detail describes the pause
	waitAsked  // a separate message asks the user for a decision; the card shows no waitLine
)

// waitLine is the last line of a running card. It explains why the turn makes no progress at the moment.
type waitLine struct {
	state  waitState
	detail string
	retry  cli.Retry     // when and why the agent repeats a request to its model
	clock  time.Duration // waiting time that the line shows; 0 if the line shows none
}

// setWait replaces the last line of the card. It reports whether the card changes.
func (d *document) setWait(state waitState, detail string) bool {
	was := d.wait
	d.wait = waitLine{state: state, detail: detail}
	return was.state != state || was.detail != detail
}

// applyStatus shows a status that the agent reported. It reports whether the card changes. A warning stays in the card;
// any other status disappears with the next event.
func (d *document) applyStatus(s cli.Status) bool {
	switch {
	case s.Kind == cli.StatusWarning:
		d.addNote(warningLine(s))
		return true
	case s.Kind == cli.StatusNotice:
		return d.addOwn(&segment{kind: noteSegment, note: warningLine(s)})
	case s.Kind == cli.StatusCompacting:
		return d.setWait(waitCompacting, "")
	case s.Kind == cli.StatusRetrying:
		was := d.wait.retry
		changed := d.setWait(waitRetrying, s.Detail)
		d.wait.retry = s.Retry
		return changed || was != s.Retry
	case s.Kind == cli.StatusPaused:
		return d.setWait(waitPaused, s.Detail)
	case s.Kind == cli.StatusWaiting && s.Detail != "":
		return d.setWait(waitFor, s.Detail)
	case s.Kind == cli.StatusStarting:
		return d.beginOpening(s.Detail)
	}
	return d.opened()
}

// beginOpening records that the agent's process is starting. If the start takes long, the last line of the card shows
// the given reason. beginOpening reports whether the card changes now.
func (d *document) beginOpening(reason string) bool {
	shown := d.wait.state == waitFor
	d.wait = waitLine{state: waitOpening, detail: reason}
	return shown
}

// opened is called when the agent's process has started, and when the activity that the last line shows has ended. It
// reports whether the card needs an edit now. A change from "starting" to "thinking" can wait for the next edit.
func (d *document) opened() bool {
	switch d.wait.state {
	case waitQuiet, waitOpening:
		d.wait.state, d.wait.detail = waitQuiet, ""
		return false
	case waitThinking, waitStarting:
		d.wait.state, d.wait.detail = waitThinking, ""
		return false
	}
	return d.setWait(waitQuiet, "")
}

// muteAfter is how long an agent must send nothing before the card mentions that the agent may be repeating a request
// to its model. It applies only to agents that do not report such requests.
const muteAfter = 30 * time.Second

// silence updates the last line after the agent has sent nothing for some time. The line shows how long the silence
// lasts, rounded down to a multiple of step.
func (d *document) silence(lasts, step time.Duration) {
	switch d.wait.state {
	case waitQuiet:
		d.wait.state = waitThinking
	case waitOpening:
		d.wait.state = waitStarting
	}
	if d.wait.state == waitThinking && d.turn.mute && lasts >= muteAfter {
		d.wait.state = waitMute
	}
	if lasts >= step {
		d.wait.clock = lasts.Truncate(step)
	}
}

// nextClock returns the waiting time at which the line must be updated next. It returns false if the line shows no
// waiting time.
func (w waitLine) nextClock(step time.Duration) (time.Duration, bool) {
	switch w.state {
	case waitQuiet, waitOpening, waitAsked, waitPaused:
		return 0, false
	}
	switch {
	case w.clock >= time.Hour:
		step = 5 * time.Minute
	case w.clock >= 10*time.Minute:
		step = time.Minute
	case w.clock >= 2*time.Minute:
		step = 30 * time.Second
	}
	return w.clock.Truncate(step) + step, true
}

// These are the shortest times between updates of the waiting time. Updates become less frequent over time, because
// each update is an edit.
const (
	clockPrivate = 10 * time.Second
	clockGroup   = 30 * time.Second
)

func (w waitLine) text(p lang.Printer, agent cli.Agent) render.Text {
	line := ""
	switch w.state {
	case waitThinking:
		line = p.Text("card.thinking")
	case waitMute:
		line = p.Text("card.mute", render.AgentName(p, agent))
	case waitStarting, waitFor:
		if w.detail == "" {
			line = p.Text("card.starting", render.AgentName(p, agent))
			break
		}
		line = "⏳ " + render.ShortLine(w.detail, 120) + "…"
	case waitPaused:
		line = "⏳ " + w.detail
	case waitCompacting:
		line = p.Text("card.compacting")
	case waitRetrying:
		line = p.Text("card.retrying")
		if why := cmp.Or(render.ShortLine(w.detail, 120), retryText(p, w.retry)); why != "" {
			line += " " + why
		}
	default:
		return render.Text{}
	}
	if w.clock > 0 && w.retry.In == 0 { // if retry.In is set, the line already contains a time
		line += " " + p.Elapsed(w.clock)
	}
	return render.Styled(render.Italic, line)
}

// retryText returns when and why the agent repeats a request to its model, or "" if that is unknown.
func retryText(p lang.Printer, r cli.Retry) string {
	key := map[cli.FailureKind]lang.Key{
		cli.LimitReached: "card.retry-limit", cli.Overloaded: "card.retry-overloaded",
		cli.NotLoggedIn: "card.retry-log-in",
		cli.NetworkDown: "card.retry-network",
	}[r.Why]
	switch key = cmp.Or(key, "card.retry-error"); {
	case r.Why == "":
		return ""
	case r.Attempt == 0:
		return p.Text(key)
	case r.In < time.Second:
		return p.Text("card.retry-attempt", p.Text(key), r.Attempt, r.Most)
	}
	return p.Text("card.retry-attempt-in", p.Text(key), r.Attempt, r.Most, p.Rounded(r.In))
}
