package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/orchestrator"
)

// Stop aborts what the desk has and drops what waits here. The reply to it leaves before anything is stored; what is stored
// of it, and that the updates are handled, is in the commit that records the abort.
func (c *commands) Stop(ctx context.Context, a updates.Abort) {
	in := a.In
	mine := func(other *updates.Message) bool {
		return in.Rights != orchestrator.RightsOfMember || other.User == in.User
	}
	reply := &stopReply{notices: c.notices, voice: c.voice, in: in, since: time.Now()}
	var handled orchestrator.Handled
	var prompts int
	by := orchestrator.Press{Conversation: in.Conversation, Person: in.User, Of: in.Rights, Updates: in.Updates()}
	_, err := c.desk.Stop(ctx, by, func(s *orchestrator.Stopping) {
		reply.leave(s)
		handled.Updates, prompts = a.Drop(ctx, mine)
		handled.Updates = append(handled.Updates, in.Update)
	}, func(report orchestrator.AbortReport) orchestrator.Handled {
		report.Dropped += prompts
		handled.Notices = reply.reported(report)
		return handled
	})
	if errors.Is(err, orchestrator.ErrShutdown) {
		return
	}
	if err != nil {
		c.log.Error("abort", "update", in.Update, "err", err)
		c.closer.Finish(ctx, handled.Updates)
	}
	reply.stored(handled.Notices, err)
	a.Beside(reply.follow)
}

// stillAlive is after how long an abort says what still runs: the grace of an agent and five seconds.
const stillAlive = cli.DefaultGrace + 5*time.Second

// stopReply is the message that answers an abort. It says "Stopping…" from the moment that the turn is told to end, and
// "Stopped." once all of the turn is dead and its card shows how it ended; if that is so when it leaves, it says so at once.
type stopReply struct {
	notices earlyNotices
	voice   voice
	in      *updates.Message
	since   time.Time
	early   early // nil until it left

	mu       sync.Mutex
	stopping *orchestrator.Stopping // nil if nothing ran
	report   *orchestrator.AbortReport
	err      error // of the abort
	alive    []cli.ProcessName
	message  int    // 0 until it is sent
	shown    string // what the message says
}

// leave sends the reply if a turn was told to end.
func (r *stopReply) leave(s *orchestrator.Stopping) {
	r.mu.Lock()
	r.stopping = s
	r.mu.Unlock()
	if s != nil {
		r.send()
	}
}

func (r *stopReply) send() {
	r.early = r.notices.sendEarly(r.in.Conversation, r.in.Quote(), r.leaving, r.sent)
}

// reported takes what the abort ended, sends the reply if it has not left, and gives it as it is to be stored, unless it
// has begun to leave. What it says then is for the next process, which sends it if this one does not.
func (r *stopReply) reported(report orchestrator.AbortReport) []orchestrator.Notice {
	r.mu.Lock()
	r.report = &report
	if report.Stopping != nil { // which may be a turn that began just then
		r.stopping = report.Stopping
	}
	text, k := r.textLocked(true), r.keyboardLocked()
	r.mu.Unlock()
	if r.early == nil {
		r.send()
	}
	notice, keep := r.early.keep(text, k)
	if !keep {
		return nil
	}
	return []orchestrator.Notice{notice}
}

// stored takes whether the abort is recorded, and with it the notices that reported gave.
func (r *stopReply) stored(notices []orchestrator.Notice, err error) {
	r.mu.Lock()
	r.err = err
	r.mu.Unlock()
	if len(notices) > 0 {
		r.early.kept(err == nil)
	}
	r.refresh()
}

// leaving is what the reply says when it leaves.
func (r *stopReply) leaving() (string, tgapi.Keyboard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = r.textLocked(r.overLocked())
	return r.shown, r.keyboardLocked()
}

// sent takes the message that the reply became.
func (r *stopReply) sent(message int) {
	r.mu.Lock()
	r.message = message
	r.mu.Unlock()
	r.refresh()
}

// follow has the message say what becomes of the turn, until it is over.
func (r *stopReply) follow(ctx context.Context) {
	r.mu.Lock()
	s := r.stopping
	r.mu.Unlock()
	if s == nil {
		return
	}
	late := time.NewTimer(time.Until(r.since.Add(stillAlive)))
	defer late.Stop()
	for over := false; !over; r.refresh() {
		select {
		case <-s.Over:
			over = true
		case <-late.C:
		case <-ctx.Done():
			return
		}
		if time.Since(r.since) >= cli.DefaultGrace { // else nothing can be left that would not end
			alive := s.Alive(ctx)
			r.mu.Lock()
			r.alive = alive
			r.mu.Unlock()
		}
	}
}

// refresh has the message say what is so now. Until it is sent there is nothing to change, and a turn that ends has it
// changed once: what else the abort ended is told with that.
func (r *stopReply) refresh() {
	r.mu.Lock()
	text := r.textLocked(r.overLocked())
	changed := r.message != 0 && r.report != nil && text != r.shown && (r.overLocked() || len(r.alive) > 0)
	if changed {
		r.shown = text
	}
	message, k := r.message, r.keyboardLocked()
	r.mu.Unlock()
	if changed {
		r.voice.Settle(r.in.Conversation, message, text, k)
	}
}

func (r *stopReply) overLocked() bool {
	if r.stopping == nil {
		return true
	}
	select {
	case <-r.stopping.Over:
		return true
	default:
		return false
	}
}

func (r *stopReply) keyboardLocked() tgapi.Keyboard {
	if r.report == nil || r.report.Unshown == "" {
		return nil
	}
	return tgapi.Keyboard{{turnButtons{}.ShowAgain(r.report.Unshown)}}
}

func (r *stopReply) textLocked(over bool) string {
	var report orchestrator.AbortReport
	if r.report != nil {
		report = *r.report
	}
	if r.in.Rights == orchestrator.RightsOfMember && r.stopping == nil && report == (orchestrator.AbortReport{}) && r.err == nil {
		return "Nothing of yours runs or waits here."
	}
	switch {
	case r.stopping == nil:
		return abortSentence(report, r.err)
	case !over:
		return "Stopping…" + aliveSentence(" These processes still run: ", r.alive)
	case len(r.alive) > 0:
		return "Not all of it could be stopped." + aliveSentence(" These processes still run: ", r.alive)
	}
	report.Running = true
	return abortSentence(report, r.err)
}

// aliveSentence names processes after an introduction; empty if there are none.
func aliveSentence(intro string, alive []cli.ProcessName) string {
	if len(alive) == 0 {
		return ""
	}
	var names []string
	for _, p := range alive {
		names = append(names, fmt.Sprintf("%s (%d)", render.ShortenPlain(render.OneLine(p.Name), 40), p.PID))
	}
	return intro + strings.Join(names, ", ") + "."
}

func abortSentence(r orchestrator.AbortReport, err error) string {
	var s string
	switch {
	case r.Running:
		s = "Stopped."
	case r.Unshown != "":
	case r.Dropped == 0 && err == nil:
		return "Nothing is running here."
	case err == nil:
		s = "Nothing was running."
	}
	if r.Unshown != "" {
		s += " The rest of the answer is not sent."
	}
	if r.Dropped > 0 {
		s += fmt.Sprintf(" %s will not run.", render.Count(r.Dropped, "waiting message", "waiting messages"))
	}
	if err != nil {
		s += " Not everything could be stopped; /status says what is left, and the log why."
	}
	return strings.TrimSpace(s)
}
