package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// stop handles /abort. It stops the running turn, empties the queue, and replies. One transaction stores the end of the
// turns and the final text of the reply, and marks the updates as handled. If a turn is running, the reply is sent
// before this transaction.
func (c *commands) stop(ctx context.Context, a updates.Abort) {
	in := a.In
	c.endWait(ctx, in.Press)
	mine := func(other *updates.Message) bool {
		return in.Role.May(orchestrator.EndAny) || other.Person == in.Person
	}
	reply := &stopReply{messages: c.messages, lang: c.lang.Of(a.In.Conversation.Chat), in: in, since: time.Now()}
	var handled orchestrator.Handled
	var prompts int
	_, err := c.desk.Stop(ctx, in.Press, func(s *orchestrator.Stopping) {
		reply.sendStopping(s)
		handled.Updates, prompts = a.Drop(ctx, mine)
		handled.Updates = append(handled.Updates, in.Update())
	}, func(report orchestrator.AbortReport) orchestrator.Handled {
		report.Dropped += prompts
		handled.Notices = reply.recordReport(report)
		return handled
	})
	if errors.Is(err, orchestrator.ErrShutdown) {
		return
	}
	if err != nil { // the turn was stopped, but this was not stored yet; see Desk.Stop
		c.log.Error("abort", "update", in.Update(), "err", err)
	}
	reply.recordStored(err == nil)
	if in.Role.May(orchestrator.EndAny) {
		// The orchestrator withdraws only the unsent messages of the aborted turn. The user may also stop the work of
		// others, so withdraw the unsent messages of all turns.
		c.withdraw(ctx, in.Conversation)
	}
	a.Go(reply.follow)
}

// withdraw drops the unsent messages that agents of this conversation wrote during their turns.
func (c *commands) withdraw(ctx context.Context, in orchestrator.ConversationID) {
	if err := c.messages.Withdraw(ctx, in, message.AsidePrefix); err != nil {
		c.log.Error("withdraw what agents said", "chat", in.Chat, "topic", in.Topic, "err", err)
	}
}

// stillAlive is the time after which the reply to /abort names processes that are still running. It is longer than
// DefaultGrace, which is the time that an agent has to end.
const stillAlive = cli.DefaultGrace + 5*time.Second

// stopReply is the reply to /abort. It first shows "Stopping…", and then "Stopped." when all processes of the turn have
// ended and the turn's card is final. The database contains the final text from the start, so that the next process can
// show this text after a crash.
type stopReply struct {
	messages *message.Messages
	lang     lang.Printer
	in       *updates.Message
	since    time.Time
	message  *message.Message // nil until the reply is sent

	mu       sync.Mutex
	stopping *orchestrator.Stopping // nil if no turn was running
	report   *orchestrator.AbortReport
	alive    []cli.ProcessName
}

// stopPrefix is the prefix of the database keys of replies to /abort.
const stopPrefix = "stop/"

// sendStopping sends the reply if a turn is running. If no turn is running, s is nil.
func (r *stopReply) sendStopping(s *orchestrator.Stopping) {
	r.mu.Lock()
	r.stopping = s
	r.mu.Unlock()
	if s != nil {
		r.send()
	}
}

func (r *stopReply) send() {
	r.message = r.messages.Early(message.Spec{
		Key: stopPrefix + strconv.FormatInt(r.in.Update(), 10), To: r.in.Conversation,
		Content: func(context.Context) (message.Content, error) { return r.content(), nil },
	})
}

// recordReport sets the final text of the reply, and sends the reply if sendStopping has not sent it. It returns the
// row to store, or no row if the chat already shows the final text.
func (r *stopReply) recordReport(report orchestrator.AbortReport) []orchestrator.Message {
	r.mu.Lock()
	r.report = &report
	if report.Stopping != nil { // this turn may have started after the call of sendStopping
		r.stopping = report.Stopping
	}
	last := r.contentLocked(true)
	r.mu.Unlock()
	if r.message == nil {
		r.send()
	}
	r.message.Announce(last)
	row, keep := r.message.Keep(last)
	if !keep {
		return nil
	}
	return []orchestrator.Message{row}
}

// recordStored must be called after the caller has tried to store the row that recordReport returned. inDatabase is
// false if the caller could not store the row.
func (r *stopReply) recordStored(inDatabase bool) { r.message.Kept(inDatabase) }

// content returns the current content of the reply.
func (r *stopReply) content() message.Content {
	r.mu.Lock()
	defer r.mu.Unlock()
	over := r.overLocked()
	c := r.contentLocked(over)
	if !over || r.report == nil {
		c.Lifecycle = message.Growing
	}
	return c
}

// follow updates the reply until the turn has ended.
func (r *stopReply) follow(ctx context.Context) {
	r.mu.Lock()
	s := r.stopping
	r.mu.Unlock()
	if s == nil {
		return
	}
	late := time.NewTimer(time.Until(r.since.Add(stillAlive)))
	defer late.Stop()
	for over := false; !over; r.message.Update(outbox.Awaited) {
		select {
		case <-s.Over:
			over = true
		case <-late.C:
		case <-ctx.Done():
			return
		}
		if time.Since(r.since) >= cli.DefaultGrace { // before this time, processes may be ending normally
			alive := s.Alive(ctx)
			r.mu.Lock()
			r.alive = alive
			r.mu.Unlock()
		}
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

func (r *stopReply) contentLocked(over bool) message.Content {
	c := message.Content{Text: render.Plain(r.textLocked(over)), ReplyTo: r.in.Quote()}
	if r.report != nil && r.report.Unshown != "" {
		c.Keyboard = tgapi.Keyboard{{turnButtons{r.lang}.ShowAgain(r.report.Unshown)}}
	}
	return c
}

func (r *stopReply) textLocked(over bool) string {
	var report orchestrator.AbortReport
	if r.report != nil {
		report = *r.report
	}
	if !r.in.Role.May(orchestrator.EndAny) && r.stopping == nil && report == (orchestrator.AbortReport{}) {
		return r.lang.Text("bot.nothing-of-yours")
	}
	switch {
	case r.stopping == nil:
		return abortSentence(r.lang, report)
	case !over:
		return strings.TrimSpace(r.lang.Text("bot.stopping") + " " + aliveSentence(r.lang, r.alive))
	case len(r.alive) > 0:
		return notStopped(r.lang, r.alive)
	}
	report.Running = true
	return abortSentence(r.lang, report)
}

func notStopped(p lang.Printer, alive []cli.ProcessName) string {
	return p.Text("bot.not-all-stopped") + " " + aliveSentence(p, alive)
}

// resumeStops pauses and retries if the database could not store the end of an abort. The pause doubles with each
// failure, from releaseAgain to releaseSlowest.
const (
	releaseAgain   = 5 * time.Second
	releaseSlowest = 5 * time.Minute
)

// resumeStops shows the final text in the replies to /abort that still show "Stopping…" because the previous process
// ended too early. For each reply, it waits in the background until the turn has ended. beside starts a goroutine.
func resumeStops(ctx context.Context, messages *message.Messages, desk Desk, beside func(func()), l *lang.Choices,
	log *slog.Logger) error {
	held, err := messages.Hold(ctx, stopPrefix)
	if err != nil {
		return fmt.Errorf("load replies to aborts: %w", err)
	}
	for _, row := range held {
		beside(func() {
			if s := desk.Stopping(row.Conversation); s != nil {
				select {
				case <-s.Over:
				case <-ctx.Done():
					return
				}
				if alive := s.Alive(ctx); len(alive) > 0 {
					row.Content = message.Content{
						Text: render.Plain(notStopped(l.Of(row.Conversation.Chat), alive)),
					}.Encode()
				}
			}
			for pause := releaseAgain; ; pause = min(2*pause, releaseSlowest) { // repeat, because the disk may be full
				err := messages.Release(ctx, row)
				if err == nil {
					return
				}
				log.Warn("store the result of an abort", "chat", row.Conversation.Chat, "again in", pause, "err", err)
				select {
				case <-time.After(pause):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return nil
}

// aliveSentence returns a sentence that names the processes that are still running, or "" if all have ended.
func aliveSentence(p lang.Printer, alive []cli.ProcessName) string {
	if len(alive) == 0 {
		return ""
	}
	var names []string
	for _, a := range alive {
		names = append(names, fmt.Sprintf("%s (%d)", render.ShortLine(a.Name, 40), a.PID))
	}
	return p.Text("bot.alive", p.List(names...))
}

func abortSentence(p lang.Printer, r orchestrator.AbortReport) string {
	var parts []string
	switch {
	case r.Running:
		parts = append(parts, p.Text("bot.stopped"))
	case r.Unshown != "":
	case r.Questions > 0:
	case r.Dropped == 0:
		return p.Text("bot.nothing-runs")
	default:
		parts = append(parts, p.Text("bot.nothing-ran"))
	}
	return strings.Join(append(parts, abortDetails(p, r)...), " ")
}

// abortDetails returns sentences about everything that an abort stopped, except the running turn.
func abortDetails(p lang.Printer, r orchestrator.AbortReport) (parts []string) {
	if r.Unshown != "" {
		parts = append(parts, p.Text("bot.rest-not-sent"))
	}
	if r.Questions > 0 {
		parts = append(parts, p.Text("bot.questions-stopped", r.Questions))
	}
	if r.Dropped > 0 {
		parts = append(parts, p.Text("bot.dropped", r.Dropped))
	}
	return parts
}

// StoredAborts returns the aborts that the previous process stored but did not handle, for the orchestrator's Recover
// and for Run.
func (b *Bot) StoredAborts(ctx context.Context) ([]orchestrator.PendingAborts, error) {
	return updates.FindAborts(ctx, b.opts.Journal, b.opts.Allow, abortCommand())
}
