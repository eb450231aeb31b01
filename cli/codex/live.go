package codex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// live is a thread in an app server that it may share with other conversations.
type live struct {
	server *server
	bound  binding
	marker string // value of threadVar in the environment of everything that the thread's tools start
	thread cli.AgentSessionID
	dir    string
	model  string // the default model; empty if unknown

	mu    sync.Mutex
	phase livePhase
	turn  *liveTurn // the running turn
	left  *awaitedTurn
	over  chan struct{} // closed when Close is done
	err   error         // the error of Close
}

// livePhase is the state of a session.
type livePhase string

const (
	liveOpen   livePhase = "open"
	liveSpent  livePhase = "spent" // takes no further turn: one was interrupted, and processes of it may still run
	liveClosed livePhase = "closed"
)

func (s *live) opts() Options { return s.server.provider.opts }

var (
	_ cli.Session = (*live)(nil)
	_ cli.Decider = (*live)(nil)
	_ cli.Steerer = (*live)(nil)
)

// threadVar marks all processes that the tools of one thread start. An interrupted turn leaves them running, and the
// processes of other threads must not be ended.
const threadVar = "DUCTOR_THREAD"

// openLive returns a session in a suitable server, with its thread started or resumed.
func (p *Provider) openLive(ctx context.Context, req cli.Request) (*live, error) {
	setting, command := p.settingOf(req)
	h, err := p.pool.Join(ctx, setting, command)
	if err != nil {
		return nil, cli.AsFailure(Agent, err)
	}
	s := &live{server: h, phase: liveOpen, dir: req.Dir, bound: bindingOf(req), marker: string(h.Program().Run()) + "-" + h.Peer().NextID()}
	if err := s.begin(ctx, req); err != nil {
		return nil, s.unusable(ctx, err)
	}
	return s, nil
}

// unusable closes a session that could not be opened, and returns the reason.
func (s *live) unusable(ctx context.Context, err error) *cli.Failure {
	f := s.server.broken(err)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts().Grace+stopWait)
	defer cancel()
	if err := s.Close(stop); err != nil {
		f.Cause = errors.Join(f.Cause, err)
	}
	return f
}

// threadReply is the reply to thread/start and thread/resume.
type threadReply struct {
	Thread struct {
		ID cli.AgentSessionID `json:"id"`
	} `json:"thread"`
	Model string `json:"model"`
}

// begin starts or resumes the thread. The model and the permissions are set with its turns.
func (s *live) begin(ctx context.Context, req cli.Request) error {
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	// With another sandbox Codex would permanently store in the user's configuration that it trusts the project.
	params := map[string]any{"config": s.config(req), "sandbox": readOnly}
	if req.Dir != "" {
		params["cwd"] = req.Dir
	}
	method := "thread/start"
	if req.Resume != "" {
		method = "thread/resume"
		params["threadId"], params["excludeTurns"] = req.Resume, true
	}
	var reply threadReply
	if err := s.server.Peer().Call(ctx, method, params, &reply); err != nil {
		return err
	}
	if reply.Thread.ID == "" {
		return cli.Failf(cli.BadOutput, Agent, "it started a thread without a name")
	}
	if req.Resume != "" && reply.Thread.ID != req.Resume {
		return cli.Failf(cli.ResumeFailed, Agent, "it began another thread")
	}
	defaults, err := s.server.configured(ctx)
	s.thread, s.model = reply.Thread.ID, cmp.Or(defaults.Model, reply.Model)
	return err
}

// config returns the thread's differences from the process's configuration. The keys are dotted, so that the rest of
// their tables stays as configured.
func (s *live) config(req cli.Request) map[string]any {
	config := map[string]any{
		"shell_environment_policy.set." + threadVar: s.marker,
		"features.default_mode_request_user_input":  true,
		"suppress_unstable_features_warning":        true, // about the line above
	}
	if projects := trust(req); len(projects) > 0 {
		config["projects"] = projects
	}
	if req.ChatID != 0 {
		config["shell_environment_policy.set."+cli.ChatIDVar] = strconv.FormatInt(req.ChatID, 10)
	}
	for _, s := range req.Servers {
		config["mcp_servers."+s.Name] = serverTable(s)
		for name, value := range s.Env {
			config["shell_environment_policy.set."+name] = value
		}
	}
	return config
}

// binding has the values with which a thread was started and that it cannot change.
type binding struct {
	Chat    int64               `json:"chat,omitempty"`
	Servers string              `json:"servers,omitempty"` // a digest
	Project cli.ProjectSettings `json:"project,omitempty"`
}

func bindingOf(req cli.Request) binding {
	b := binding{Chat: req.ChatID, Project: req.Project}
	if len(req.Servers) > 0 {
		b.Servers = cli.Digest(req.Servers)
	}
	return b
}

// serverTable returns the Codex configuration of a tool server.
func serverTable(s cli.ToolServer) map[string]any {
	table := map[string]any{"command": s.Path, "args": append([]string{}, s.Args...), "env": s.Env}
	if s.Trusted {
		table["default_tools_approval_mode"] = "approve"
	}
	if s.Timeout > 0 {
		table["tool_timeout_sec"] = int(s.Timeout.Seconds())
	}
	return table
}

// Fits returns true if thread, chat, tool servers and process are the same. Model, effort, permissions, directories and
// instructions are set with the turns.
func (s *live) Fits(req cli.Request) bool {
	s.mu.Lock()
	thread, usable := s.thread, s.phase == liveOpen
	s.mu.Unlock()
	setting, _ := s.server.provider.settingOf(req)
	return usable && req.Resume == thread && bindingOf(req) == s.bound && setting == s.server.Key() && s.server.Alive()
}

// Info describes the thread and the process, which others may share.
func (s *live) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	alive := s.phase == liveOpen && s.server.Alive()
	info := cli.SessionInfo{Agent: Agent, Mode: cli.Live, AgentSessionID: s.thread, Alive: alive}
	info.PID = s.server.PID()
	return info
}

// Close ends the processes of the thread's tools. It ends the server's process if no other session uses it.
func (s *live) Close(ctx context.Context) error {
	s.mu.Lock()
	first, turn := s.over == nil, s.turn
	if first {
		s.phase, s.over = liveClosed, make(chan struct{})
	}
	over := s.over
	s.mu.Unlock()
	if !first {
		select {
		case <-over:
			return s.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer close(over)
	if turn != nil {
		turn.stop(cli.ErrClosing)
		select {
		case <-turn.done:
		case <-ctx.Done():
		}
	}
	s.err = s.release(ctx)
	return s.err
}

// release leaves the server. The last session ends the process, which ends everything it ever started. Another session
// ends only the rest of its own processes.
func (s *live) release(ctx context.Context) error {
	p, h := s.server.provider, s.server
	if h.PID() != 0 && !h.Alone() {
		if err := s.clean(ctx); err != nil && h.PID() != 0 {
			p.opts.Logger.Warn("what a thread's tools started may still run", "agent", string(Agent), "thread", string(s.thread), "err", err)
		}
	}
	return h.Leave(ctx, shared.Closed)
}

// clean ends all processes of the thread's tools, and removes the thread.
func (s *live) clean(ctx context.Context) error {
	err := s.endTools(ctx)
	if s.thread == "" {
		return err
	}
	s.server.forgetTerms(s.thread)
	ask, cancel := context.WithTimeout(ctx, s.opts().Grace)
	defer cancel()
	return errors.Join(err, notRefused(s.server.Peer().Call(ask, "thread/unsubscribe", map[string]any{"threadId": s.thread}, nil)))
}

// notRefused returns err, unless it says that the thread or method does not exist.
func notRefused(err error) error {
	var refused *rpc.Error
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// endTools ends all processes of the thread's tools.
func (s *live) endTools(ctx context.Context) error {
	var err error
	if s.thread != "" {
		ask, cancel := context.WithTimeout(ctx, s.opts().Grace)
		defer cancel()
		// If Codex rejects this, sweep still ends the processes.
		params := map[string]any{"threadId": s.thread}
		err = notRefused(s.server.Peer().Call(ask, "thread/backgroundTerminals/clean", params, nil))
	}
	return errors.Join(err, s.server.provider.sweep(ctx, threadVar+"="+s.marker))
}

// Detach detaches from the thread, and from the process if no other session uses it.
func (s *live) Detach() {
	s.mu.Lock()
	first := s.over == nil
	if first {
		s.phase, s.over = liveClosed, make(chan struct{})
		close(s.over)
	}
	s.mu.Unlock()
	if !first {
		return
	}
	_ = s.server.Leave(context.Background(), shared.Detaches) // detaching never fails
}

// spend makes the session accept no further turn.
func (s *live) spend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == liveOpen {
		s.phase = liveSpent
	}
}

// running returns the running turn, or nil.
func (s *live) running() *liveTurn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// Decide implements cli.Decider.
func (s *live) Decide(_ context.Context, id cli.ApprovalID, d cli.Decision) error {
	turn := s.running()
	if turn == nil {
		return cli.ErrNotAsked
	}
	return turn.decide(id, d)
}

// Steer implements cli.Steerer.
func (s *live) Steer(ctx context.Context, req cli.Request) error {
	turn := s.running()
	if turn == nil {
		return cli.ErrNoTurn
	}
	return turn.steer(ctx, req)
}

// sweepScript ends every process that has $1 in its environment: TERM, a second, KILL, until none is left. It runs
// where the agent does, which may be a container. The pattern is never in the script's own environment.
const sweepScript = `i=0
while [ $i -lt 100 ]; do
	found=
	for f in $(grep -lsF -- "$1" /proc/[0-9]*/environ); do
		pid=${f#/proc/}; pid=${pid%/environ}
		found=yes
		if [ $i -lt 20 ]; then kill -TERM "$pid"; else kill -KILL "$pid"; fi
	done 2>/dev/null
	[ -n "$found" ] || exit 0
	i=$((i+1)); sleep 0.05
done
exit 1`

// sweep ends every process with the entry in its environment.
func (p *Provider) sweep(ctx context.Context, entry string) error {
	_, err := turn.Output(ctx, p.opts.Launcher, cli.Command{
		Path: "sh", Args: []string{"-c", sweepScript, "sh", entry},
		Env: []string{"PATH=" + cmp.Or(cli.Variable(p.opts.Env(), "PATH"), "/usr/bin:/bin")},
		For: cli.Purpose{Agent: Agent},
	}, stopWait)
	if err != nil {
		return fmt.Errorf("end what was left of a turn: %w", err)
	}
	return nil
}
