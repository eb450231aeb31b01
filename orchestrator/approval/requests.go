package approval

import (
	"cmp"
	"context"
	"log/slog"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// Limits on the requests of a turn.
const (
	mostOpen   = 32 // open requests of one turn
	mostEvents = 64 // events that wait to be recorded; when the queue is full, the agent's stream waits
)

// Sentences that agents and users read.
const (
	expiredSentence    = "No user decided in time, so it was denied."
	unansweredSentence = "No user answered in time. Decide yourself, or say what you need to know and end your turn."
	noUserSentence     = "No user can be asked here, so it was denied."
	manySentence       = "Too many requests wait for a decision, so this one was denied. Wait for them."
	brokenSentence     = "ductor could not record the request, so it was denied."
	toolSentence       = "This tool is not among those that may be used here, so it was denied. " +
		"Do what you can without it."
	goneSentence   = "The request was withdrawn before."
	secretSentence = "ductor was restarted before the answer arrived, and does not keep such answers. Ask again."
)

// RunningTurn is a running turn whose requests the service handles.
type RunningTurn struct {
	Turn    orchestrator.Turn
	Dir     string
	Mode    cli.PermissionMode
	Tools   cli.ToolList // tools that the turn may use, in the agent's words
	Allowed []string     // the configuration's allowed tools, in the agent's words
	Resumed bool         // events before cli.CaughtUp happened before this process started
	// Known returns the secrets that must not be shown or stored if the agent prints them. Learn adds secret answers to
	// Known, because the agent may repeat them. Both are safe for concurrent use.
	Known func() *secrets.Set
	Learn func(questions []cli.Question, answers [][]string)
	// Show receives a cli.ApprovalWithdrawn when the agent no longer waits for a request.
	Show func(cli.Event)
}

// Requests handles the requests of one running turn: users or rules decide, and Requests passes the decision to the
// agent. A separate goroutine handles the events from a queue, so that the agent's stream neither waits for the disk
// nor delivers decisions itself.
type Requests struct {
	s      *Service
	turn   RunningTurn
	life   context.Context // context of the turn
	log    *slog.Logger
	events chan cli.Event
	done   chan struct{}

	mu        lock                                    // held while one event or decision is handled
	delivered map[cli.ApprovalID]bool                 // requests of this process; true once the agent has the decision
	timers    map[orchestrator.ApprovalID]func() bool // stop the timers; nil after Close
	held      []cli.Event                             // requests before CaughtUp; some may be withdrawn since
	own       map[cli.ApprovalID]ownRequest           // requests that ductor makes for the agent; nil after Drain
}

// lock is a mutex that its holder keeps while it waits for the disk or an agent. A sync.Mutex does not work in tests:
// in a synctest bubble the clock advances only while all goroutines wait durably, and waiting for a sync.Mutex does not
// count.
type lock chan struct{}

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

// Open starts to handle the requests of a turn. At the end of the turn the caller must call Drain and then Close. life
// is the context of the turn.
func (s *Service) Open(life context.Context, turn RunningTurn) *Requests {
	r := &Requests{
		s: s, turn: turn, life: life, mu: make(lock, 1), log: s.log.With("turn", turn.Turn.ID),
		events: make(chan cli.Event, mostEvents), done: make(chan struct{}),
		delivered: map[cli.ApprovalID]bool{}, own: map[cli.ApprovalID]ownRequest{},
		timers: map[orchestrator.ApprovalID]func() bool{},
	}
	s.mu.Lock()
	s.turns[turn.Turn.ID] = r
	s.mu.Unlock()
	if turn.Resumed {
		r.rearm()
	}
	go r.work()
	return r
}

// recordContext returns a context that never ends, because all events must be recorded.
func (r *Requests) recordContext() context.Context { return context.WithoutCancel(r.life) }

// HandleEvent handles an event of the turn. The agent's stream calls it.
func (r *Requests) HandleEvent(ev cli.Event) {
	switch ev.(type) {
	case cli.ToolStarted, cli.ToolChanged, cli.ToolEnded: // wait in any case: the audit must be complete
		r.events <- ev
		return
	case cli.ApprovalAsked, cli.QuestionAsked, cli.ApprovalWithdrawn, cli.CaughtUp:
	default:
		return
	}
	select {
	case r.events <- ev:
	case <-r.life.Done(): // the agent is being killed, or was detached and will repeat its request
	}
}

// Drain returns once all requests are recorded. After the call the caller sends no more events, and ductor makes no
// more requests for the agent.
func (r *Requests) Drain() {
	close(r.events)
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own = nil
}

// Close stops the timers and forgets the turn. Until then, Requests recognizes a decision that comes too late for the
// agent.
func (r *Requests) Close() {
	r.s.mu.Lock()
	delete(r.s.turns, r.turn.Turn.ID)
	r.s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, stop := range r.timers {
		stop()
	}
	r.timers = nil
}

// work handles the events of the turn. It audits a tool when the tool has ended, because until then the agent may still
// ask for permission to use it.
func (r *Requests) work() {
	defer close(r.done)
	running := map[cli.ToolID]cli.ToolStarted{}
	for ev := range r.events {
		switch ev := ev.(type) {
		case cli.ToolStarted:
			ev.Title = r.turn.Known().String(ev.Title)
			running[ev.ID] = ev
		case cli.ToolChanged:
			ev.Title = r.turn.Known().String(ev.Title)
			running[ev.ID] = ev.ToolStarted
		case cli.ToolEnded:
			if begun, known := running[ev.ID]; known {
				delete(running, ev.ID)
				r.auditTool(begun, ev)
			}
		default:
			if r.life.Err() == nil {
				r.handle(ev)
			}
		}
	}
}

// auditTool records a tool that the agent ran. The store skips a tool if the agent asked for permission, or if a
// previous process has recorded the tool.
func (r *Requests) auditTool(begun cli.ToolStarted, ended cli.ToolEnded) {
	r.mu.Lock()
	mode := r.turn.Mode
	r.mu.Unlock()
	t := r.turn.Turn
	entry := orchestrator.AuditEntry{
		At: r.s.opts.Now(), What: orchestrator.AuditRan, Conversation: t.Prompt.Conversation, Turn: t.ID,
		Call: ended.ID, Agent: t.Agent,
		Tool: begun.Name, Title: begun.Title, Rule: string(mode),
		Reason: cli.Shorten(r.turn.Known().String(ended.Err), toolReasonBytes),
	}
	if err := r.s.opts.Store.RecordAudit(r.recordContext(), entry); err != nil { // the tool has already run
		r.log.Error("record the audit", "what", entry.What, "err", err)
	}
}

// toolReasonBytes limits the error text of a failed tool in the audit.
const toolReasonBytes = 200

func (r *Requests) handle(ev cli.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handleLocked(ev)
}

func (r *Requests) handleLocked(ev cli.Event) {
	switch ev := ev.(type) {
	case cli.CaughtUp:
		r.turn.Resumed = false
		for _, ev := range r.held {
			r.asked(ev)
		}
		r.held = nil
	case cli.ApprovalWithdrawn:
		r.withdrawn(ev.ID)
	default:
		if r.turn.Resumed && len(r.held) < mostEvents {
			r.held = append(r.held, ev)
			return
		}
		r.asked(ev)
	}
}

func (r *Requests) withdrawn(request cli.ApprovalID) {
	for i, ev := range r.held {
		if requestOf(ev) == request {
			r.held = append(r.held[:i], r.held[i+1:]...)
			break
		}
	}
	approval, changed, err := r.s.opts.Store.WithdrawRequest(r.recordContext(), r.turn.Turn.ID, request, r.s.opts.Now())
	if err != nil {
		r.log.Error("withdraw approval", "err", err)
		r.s.afterFullDisk(err, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.withdrawn(request)
		})
	}
	if changed {
		r.show(approval)
	}
}

func requestOf(ev cli.Event) cli.ApprovalID {
	switch ev := ev.(type) {
	case cli.ApprovalAsked:
		return ev.ID
	case cli.QuestionAsked:
		return ev.ID
	}
	return ""
}

// asked handles a request: it lets a rule or a user decide, or delivers an earlier decision.
func (r *Requests) asked(ev cli.Event) {
	request := requestOf(ev)
	if r.s.opts.Screen == nil {
		r.deny(request, noUserSentence)
		return
	}
	approval, err := r.record(ev)
	if err != nil {
		r.log.Error("record a request of the agent; it is denied", "err", err)
		r.deny(request, brokenSentence)
		return
	}
	r.delivered[request] = false
	before := approval.Ruled == "" || approval.By != 0 // the previous process may have shown the approval as open
	if approval.State == orchestrator.ApprovalOpen && r.timers[approval.ID] == nil && len(r.timers) >= mostOpen {
		approval, before = r.refuse(approval), false
	}
	if approval.State == orchestrator.ApprovalOpen {
		r.arm(approval)
		r.show(approval)
		return
	}
	r.deliverOrLog(approval)
	if before { // the chat may still show the approval as open
		r.show(approval)
	}
}

// refuse denies an approval beyond the limit of open approvals. Users do not see it.
func (r *Requests) refuse(approval orchestrator.Approval) orchestrator.Approval {
	now, _, err := r.close(approval.ID, orchestrator.Decision{State: orchestrator.ApprovalDenied, Reason: manySentence})
	if err != nil {
		r.log.Error("deny an approval beyond the limit", "err", err)
		return approval
	}
	return now
}

// record stores a request and returns the approval of that request.
func (r *Requests) record(ev cli.Event) (orchestrator.Approval, error) {
	approval, ofOwn := r.compose(ev)
	var rule string
	var err error
	if !ofOwn {
		rule, err = r.autoApproval(approval.ApprovalRequest)
	}
	if err != nil {
		return orchestrator.Approval{}, err
	}
	stored := hide(r.turn.Known(), approval)
	switch {
	case !r.permits(approval.ApprovalRequest):
		rule = ""
		stored.State, stored.Reason, stored.Decided = orchestrator.ApprovalDenied, toolSentence, r.s.opts.Now()
		stored.Ruled = orchestrator.RuledByTools
	case rule != "":
		stored.State, stored.Ruled, stored.Decided = orchestrator.ApprovalAllowed, rule, r.s.opts.Now()
	}
	now, err := r.s.opts.Store.OpenApproval(r.recordContext(), stored, digestOf(approval.ApprovalRequest))
	if err != nil || rule == "" || now.State != orchestrator.ApprovalOpen {
		return now, err
	}
	// An open approval is older than the rule that now allows it.
	now, _, err = r.close(now.ID, orchestrator.Decision{State: orchestrator.ApprovalAllowed, Ruled: rule})
	if err == nil {
		r.show(now)
	}
	return now, err
}

// compose creates the approval for a request. It also reports whether the request touches one of ductor's own files.
func (r *Requests) compose(ev cli.Event) (approval orchestrator.Approval, ofOwn bool) {
	now, turn := r.s.opts.Now(), r.turn.Turn
	approval = orchestrator.Approval{
		ID: orchestrator.ApprovalID(random(10)), Nonce: random(15),
		ApprovalRequest: orchestrator.ApprovalRequest{
			Turn: turn.ID, Session: turn.Session, Conversation: turn.Prompt.Conversation.Shown(),
			Agent:    cmp.Or(r.own[requestOf(ev)].of.Agent, turn.Agent),
			AgentIDs: []cli.ApprovalID{requestOf(ev)}, Dir: r.turn.Dir, Sandbox: turn.Sandbox, Asked: now,
		},
		ApprovalTerms: orchestrator.ApprovalTerms{Approvers: r.s.approvers(turn.Prompt),
			Expires: now.Add(r.s.opts.Timeout)},
		Decision: orchestrator.Decision{State: orchestrator.ApprovalOpen},
	}
	switch ev := ev.(type) {
	case cli.ApprovalAsked:
		approval.Request = &ev
		if ev.Tool != cli.ProjectTool {
			r.inspect(&approval.ApprovalRequest)
		}
	case cli.QuestionAsked:
		approval.Questions = ev.Questions
	}
	ofOwn = r.s.touchesOwn(approval.ApprovalRequest)
	if turn.Prompt.Rights.OfChat() && !ofOwn { // rules of the chat do not apply to turns with other rights
		session, lasting := offeredRules(approval.ApprovalRequest)
		approval.SessionRule, approval.Rule = session.Text, lasting.Text
		plan := approval.Request != nil && approval.Request.Tool == cli.PlanTool
		careful := r.turn.Mode == cli.Plan || r.turn.Mode == cli.Ask || r.turn.Mode == ""
		approval.Edits = careful && (plan || session.Kind == orchestrator.RuleEdits)
	}
	return approval, ofOwn
}

// hiddenPart describes text that hide removed because it may be a secret. It is a part of a sentence.
const hiddenPart = "it without a text that ductor takes for a secret"

// hide removes secrets from an approval before it is stored and shown. Rules are created from the visible text, so hide
// removes the offered rules if that text contained a secret. If hide removes more than a word, such as a whole command,
// users cannot allow the approval.
func hide(set *secrets.Set, a orchestrator.Approval) orchestrator.Approval {
	a.Questions, _ = secrets.Clean(set, a.Questions)
	if a.Request == nil {
		return a
	}
	shown, hidden := secrets.Clean(set, struct {
		Request cli.ApprovalAsked
		Links   []orchestrator.Link
	}{*a.Request, a.Links})
	p := shown.Request
	if hidden == secrets.HiddenNothing {
		return a
	}
	if hidden == secrets.HiddenMore && p.Missing == "" {
		p.Missing = hiddenPart
	}
	a.Request, a.Links, a.SessionRule = &p, shown.Links, ""
	if p.Tool != cli.ProjectTool { // a rule for project settings compares a digest of all values, including secrets
		a.Rule = ""
	}
	return a
}
