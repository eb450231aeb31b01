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
	mostOpen   = 32 // maximum number of open requests in one turn
	mostEvents = 64 // maximum number of queued events; if the queue is full, the agent must wait
)

// Sentences for agents and users: reasons for decisions that no user made, and errors.
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

// RunningTurn describes a running turn whose requests the service decides.
type RunningTurn struct {
	Turn    orchestrator.Turn
	Dir     string
	Project cli.ProjectSettings // may change later, if users allow the settings of the project
	Mode    cli.PermissionMode
	Tools   cli.ToolList // tools that the turn may use, in the agent's names
	Allowed []string     // tools that the configuration allows without asking; generic names or an agent's own
	Resumed bool         // the turn began before a restart of ductor; false after the event cli.CaughtUp
	// Known returns the secrets that ductor must not show or store if the agent prints them. Learn adds a user's secret
	// answers to the secrets. Both functions are safe for concurrent use.
	Known func() *secrets.Set
	Learn func(questions []cli.Question, answers [][]string)
	// Show gets a cli.ApprovalWithdrawn when the agent no longer waits for a request.
	Show func(cli.Event)
}

// Requests handles the requests of one running turn: it checks the rules, asks users, and passes each decision to the
// agent. A separate goroutine does this, so that the code that reads the agent's output need not wait for the disk.
type Requests struct {
	s      *Service
	turn   RunningTurn
	life   context.Context // lasts as long as the turn
	log    *slog.Logger
	events chan cli.Event
	done   chan struct{}

	mu        lock                    // held during the handling of one event or decision
	delivered map[cli.ApprovalID]bool // handled requests; the value is true once the agent has got the decision
	// timers contains functions that stop the timers of open approvals. It is nil after Close.
	timers map[orchestrator.ApprovalID]func() bool
	held   []cli.Event                   // requests from before a restart, until the event cli.CaughtUp
	own    map[cli.ApprovalID]ownRequest // requests that ductor makes for the agent; nil after Drain
}

// lock is a mutex. A goroutine may hold it while waiting for the disk or an agent. It is not a sync.Mutex: in a test
// with testing/synctest, the clock does not advance while a goroutine waits for a sync.Mutex.
type lock chan struct{}

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

// Open returns the Requests of a turn. The context must not end before the turn. When the turn has ended, the caller
// must call Drain and then Close.
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

// recordContext returns a context that is never cancelled, because every event must be recorded.
func (r *Requests) recordContext() context.Context { return context.WithoutCancel(r.life) }

// HandleEvent handles an event of the turn. The goroutine that reads the agent's output calls it.
func (r *Requests) HandleEvent(ev cli.Event) {
	switch ev.(type) {
	case cli.ToolStarted, cli.ToolChanged, cli.ToolEnded: // never dropped, because the audit log must be complete
		r.events <- ev
		return
	case cli.ApprovalAsked, cli.QuestionAsked, cli.ApprovalWithdrawn, cli.CaughtUp:
	default:
		return
	}
	select {
	case r.events <- ev:
	case <-r.life.Done(): // the turn has ended, or the agent will repeat its request after a restart of ductor
	}
}

// Drain waits until all events are handled. After Drain, HandleEvent must not be called, and ductor makes no requests
// on behalf of the agent.
func (r *Requests) Drain() {
	close(r.events)
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own = nil
}

// Close stops the timers and removes the turn from the Service. Until then, Decide can return an error to a user who
// decides too late.
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

// work handles the events in the queue. It adds a tool to the audit log only when the tool has ended, because until
// then the agent may still ask for permission.
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

// auditTool adds a tool call to the audit log. The store skips the entry if it already has an entry for this tool call,
// or if the agent asked for permission.
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
	// Only log an error: the tool has already run.
	if err := r.s.opts.Store.RecordAudit(r.recordContext(), entry); err != nil {
		r.log.Error("record the audit", "what", entry.What, "err", err)
	}
}

// toolReasonBytes is the maximum length of a tool's error in the audit log.
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
		r.withdrawn(ev)
	default:
		if r.turn.Resumed && len(r.held) < mostEvents {
			r.held = append(r.held, ev)
			return
		}
		r.asked(ev)
	}
}

func (r *Requests) withdrawn(gone cli.ApprovalWithdrawn) {
	for i, ev := range r.held {
		if requestOf(ev) == gone.ID {
			r.held = append(r.held[:i], r.held[i+1:]...)
			break
		}
	}
	what := orchestrator.AuditWithdrawn
	if gone.Superseded {
		what = orchestrator.AuditChanged
	}
	approval, changed, err := r.s.opts.Store.WithdrawRequest(r.recordContext(), r.turn.Turn.ID, gone.ID, what,
		r.s.opts.Now())
	if err != nil {
		r.s.retryOrLog(r.log, "withdraw approval", err, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.withdrawn(gone)
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

// asked handles a request of the agent. If a user or a rule decided the request before a restart, the agent gets that
// decision. Otherwise asked checks the rules and, if none applies, asks the users.
func (r *Requests) asked(ev cli.Event) {
	request := requestOf(ev)
	if r.s.opts.Screen == nil {
		r.deny(request, noUserSentence)
		return
	}
	approval, isNew, err := r.record(ev)
	if err != nil {
		r.log.Error("record a request of the agent; it is denied", "err", err)
		r.deny(request, brokenSentence)
		return
	}
	r.delivered[request] = false
	// If a user decided the approval before a restart, the chat may still show the approval as open. If a rule decided
	// the approval, the chat does not.
	maybeShown := approval.Ruled == "" || approval.By != 0
	if approval.State == orchestrator.ApprovalOpen && r.timers[approval.ID] == nil && len(r.timers) >= mostOpen {
		approval, maybeShown = r.refuse(approval), false
	}
	if approval.State == orchestrator.ApprovalOpen {
		r.arm(approval)
		r.s.show(approval, isNew)
		return
	}
	r.deliverOrLog(approval)
	if maybeShown {
		r.show(approval)
	}
}

// refuse denies a request without showing it to users. It is called if the turn has too many open requests.
func (r *Requests) refuse(approval orchestrator.Approval) orchestrator.Approval {
	now, _, err := r.close(approval.ID, orchestrator.Decision{State: orchestrator.ApprovalDenied, Reason: manySentence})
	if err != nil {
		r.log.Error("deny an approval beyond the limit", "err", err)
		return approval
	}
	return now
}

// record stores the approval for a request. If an identical request has an open approval, record returns that approval,
// and isNew is false.
func (r *Requests) record(ev cli.Event) (now orchestrator.Approval, isNew bool, err error) {
	approval, ofOwn := r.compose(ev)
	var rule string
	if !ofOwn {
		rule, err = r.autoApproval(approval.ApprovalRequest)
	}
	if err != nil {
		return orchestrator.Approval{}, false, err
	}
	stored := hide(r.turn.Known(), approval)
	switch {
	case r.forbids(approval.ApprovalRequest):
		rule = ""
		stored.State, stored.Reason, stored.Decided = orchestrator.ApprovalDenied, toolSentence, r.s.opts.Now()
		stored.Ruled = orchestrator.RuledByTools
	case rule != "":
		stored.State, stored.Ruled, stored.Decided = orchestrator.ApprovalAllowed, rule, r.s.opts.Now()
	}
	now, err = r.s.opts.Store.OpenApproval(r.recordContext(), stored, digestOf(approval.ApprovalRequest))
	isNew = now.ID == stored.ID
	if err != nil || rule == "" || now.State != orchestrator.ApprovalOpen {
		return now, isNew, err
	}
	// OpenApproval returned an older approval of this request, which is still open. Close the older approval, because a
	// rule allows the request now.
	now, _, err = r.close(now.ID, orchestrator.Decision{State: orchestrator.ApprovalAllowed, Ruled: rule})
	if err == nil {
		r.show(now)
	}
	return now, isNew, err
}

// compose creates the approval for a request. It also reports whether the request touches ductor's own files.
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
			Expires: now.Add(r.s.opts.ApprovalTimeout)},
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
	if turn.Prompt.Rights.OfChat() && !ofOwn { // for other requests, users cannot create rules
		session, lasting := offeredRules(approval.ApprovalRequest)
		approval.SessionRule, approval.Rule = session.Text, lasting.Text
		plan := approval.Request != nil && approval.Request.Tool == cli.PlanTool
		careful := r.turn.Mode == cli.Plan || r.turn.Mode == cli.Ask || r.turn.Mode == ""
		approval.Edits = careful && (plan || session.Kind == orchestrator.RuleEdits)
	}
	return approval, ofOwn
}

const hiddenPart = "it without a text that ductor takes for a secret"

// hide removes secrets from an approval before it is stored and shown. If the text of a rule contains a secret, hide
// removes the rule, because the user would not see its full text. If a secret is part of a command, users cannot allow
// the request at all.
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
	// Keep a rule for project settings: it contains only a hash of the settings, and so no secret.
	if p.Tool != cli.ProjectTool {
		a.Rule = ""
	}
	return a
}
