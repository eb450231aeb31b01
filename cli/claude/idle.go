package claude

import (
	"sync"

	"ductor/cli"
	"ductor/cli/turn"
)

// idler takes what a live process says between turns: a turn that Claude begins when a
// background task is done, or the end of a process that could not resume its session.
type idler struct {
	session *live
	run     *liveRun
	dir     string

	mu     sync.Mutex
	parser *parser // of the turn that Claude began; nil when none runs
	failed *cli.Failure
}

// line takes one line. It is called between turns, and within one only as long as busy says so.
func (i *idler) line(raw []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	l, err := decodeLine(raw)
	if err != nil {
		return
	}
	if i.parser == nil && !begins(l) {
		i.betweenTurns(l)
		return
	}
	if i.parser == nil {
		em := turn.NewEmitter(agent, i.session.provider.opts.Now, i.session.watch(func(cli.Event) {}))
		i.parser = newParser(em, i.run.mem, i.dir)
		i.parser.taken = true // no other turn waits for this one
	}
	reply, end := i.parser.line(raw)
	if reply != nil {
		i.send(reply)
	}
	if end {
		i.finish()
	}
}

func (i *idler) send(reply []byte) {
	if err := i.run.stream.Send(reply); err != nil {
		i.session.provider.opts.Logger.Warn("claude did not take its input", "err", err)
	}
}

// begins says whether a line is of a turn, as opposed to news between turns.
func begins(l *line) bool {
	return l.Type == "system" && l.Subtype == "init" || l.Type == "assistant" || l.Type == "stream_event"
}

// betweenTurns takes a line outside of any turn. A result there is the answer to a start that failed.
func (i *idler) betweenTurns(l *line) {
	i.run.mem.tasks.line(l)
	if l.Type == "result" && l.IsError {
		i.failed = resultFailure(l.resultFields, l.Subtype, trouble{})
	}
}

func (i *idler) finish() {
	p := i.parser
	i.parser = nil
	r := p.outcome
	r.Text = p.em.Answer()
	p.em.Finish(p.outcome)
	if hand := i.session.background(); hand != nil {
		hand(r)
	}
}

// busy says whether a turn of Claude's own runs.
func (i *idler) busy() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.parser != nil
}

// failure is why the process could not begin; nil if nothing is known.
func (i *idler) failure() *cli.Failure {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failed
}
