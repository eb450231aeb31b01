package codex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// live implements cli.Session.
type live struct{ *shared.Session[news] }

var _ interface {
	cli.Session
	cli.Decider
	cli.Steerer
	cli.Commander
} = live{}

// thread is one of Codex's threads in an app server. Other conversations may have threads in the same server. thread
// implements shared.AgentSession.
type thread struct {
	server *server
	live   *shared.Session[news]
	bound  binding
	marker string // value of threadVar for this thread
	id     cli.AgentSessionID
	dir    string
	model  string // the default model; empty if unknown
}

func (s *thread) opts() Options { return s.server.provider.opts }

// threadVar is an environment variable of all processes that the tools of a thread start. Its value is unique for each
// thread. These processes survive an interrupted turn. ductor finds and ends them by the variable, without ending the
// processes of other threads.
const threadVar = "DUCTOR_THREAD"

func (p *Provider) join(ctx context.Context, s *shared.Session[news], req cli.Request) (
	shared.AgentSession[news], error) {
	setting, command := p.settingOf(req)
	h, err := p.pool.Join(ctx, setting, command)
	if err != nil {
		return nil, err
	}
	marker := string(h.Program().Run()) + "-" + h.Peer().NextID()
	return &thread{server: h, live: s, dir: req.Dir, bound: bindingOf(req), marker: marker}, nil
}

func (s *thread) ID() cli.AgentSessionID { return s.id }

func (s *thread) Host() *shared.Process { return s.server.Process }

// Stop implements shared.AgentSession. It ends the server with all its threads, because a turn that ignores the
// interrupt could start more tools.
func (s *thread) Stop(ctx context.Context, grace time.Duration) error {
	return s.server.Stop(ctx, grace)
}

func (s *thread) Failure(err error) *cli.Failure { return s.server.broken(err) }

// threadReply is the response to thread/start and thread/resume.
type threadReply struct {
	Thread struct {
		ID cli.AgentSessionID `json:"id"`
	} `json:"thread"`
	Model string `json:"model"`
}

// Open implements shared.AgentSession. It sets neither the model nor the permissions, because each turn sets them.
func (s *thread) Open(ctx context.Context, req cli.Request) error {
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	// With any other sandbox, Codex would add the project to the trusted projects in the user's configuration.
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
	s.id, s.model = reply.Thread.ID, cmp.Or(defaults.Model, reply.Model)
	s.server.Set(s.id, s.live)
	return err
}

// config returns the settings of the thread that differ from those of the process. In a key, a dot separates the name
// of a table from the name of its entry.
func (s *thread) config(req cli.Request) map[string]any {
	config := map[string]any{
		"shell_environment_policy.set." + threadVar: s.marker,
		"features.default_mode_request_user_input":  true,
		"suppress_unstable_features_warning":        true, // Codex would warn about the previous entry
	}
	if projects := trust(req); len(projects) > 0 {
		config["projects"] = projects
	}
	if req.ChatID != 0 {
		config["shell_environment_policy.set."+cli.ChatIDVar] = strconv.FormatInt(req.ChatID, 10)
	}
	for _, s := range req.Servers {
		config["mcp_servers."+s.Name] = serverTable(s, req.Permission)
	}
	for _, s := range cli.WithoutForeign(req.Servers) {
		for name, value := range s.Env {
			config["shell_environment_policy.set."+name] = value
		}
	}
	return config
}

// binding contains the settings of a thread that cannot change after its start.
type binding struct {
	Chat    int64               `json:"chat,omitempty"`
	Servers string              `json:"servers,omitempty"` // digest of the tool servers
	Project cli.ProjectSettings `json:"project,omitempty"`
}

// suits reports whether a thread with this binding can run req.
func (b binding) suits(req cli.Request) bool { return b == bindingOf(req) }

func bindingOf(req cli.Request) binding {
	b := binding{Chat: req.ChatID, Project: req.Project}
	if len(req.Servers) > 0 {
		var tables []any
		for _, s := range req.Servers {
			tables = append(tables, s.Name, serverTable(s, req.Permission))
		}
		b.Servers = cli.Digest(tables...)
	}
	return b
}

// toolStart is how long ductor's own tool server may take to start, in seconds. Codex's default is 10 seconds. On a
// busy machine, Codex would then start turns without ductor's tools.
const toolStart = 60

// serverTable returns Codex's configuration of a tool server. It never uses the approval mode "auto": Codex would then
// run a tool without asking if the server declares that the tool only reads.
func serverTable(s cli.ToolServer, mode cli.PermissionMode) map[string]any {
	table := map[string]any{"command": s.Path, "args": append([]string{}, s.Args...), "env": s.Env}
	if s.URL != "" {
		table = map[string]any{"url": s.URL, "http_headers": s.HeadersBy(s.Value)}
	}
	table["default_tools_approval_mode"] = "prompt"
	if s.Trusted || mode == cli.Bypass {
		table["default_tools_approval_mode"] = "approve"
	}
	if s.Trusted {
		table["startup_timeout_sec"] = toolStart
	}
	if s.Timeout > 0 {
		table["tool_timeout_sec"] = int(s.Timeout.Seconds())
	}
	return table
}

// Fits implements shared.AgentSession. It compares only what is fixed when a thread starts. Each turn sets everything
// else: model, effort, permissions, directories and instructions.
func (s *thread) Fits(req cli.Request) bool {
	setting, _ := s.server.provider.settingOf(req)
	return s.bound.suits(req) && setting == s.server.Key()
}

// Goodbye implements shared.AgentSession. If other sessions use the server, Goodbye ends the processes that this
// thread's tools started. After the last session, the caller stops the server and all processes.
func (s *thread) Goodbye(ctx context.Context, _ shared.Phase) (shared.Leaving, error) {
	h := s.server
	h.Remove(s.id, s.live)
	if h.PID() != 0 && !h.Alone() {
		if err := s.clean(ctx); err != nil && h.PID() != 0 {
			s.opts().Logger.Warn("what a thread's tools started may still run", "agent", string(Agent),
				"thread", string(s.id), "err", err)
		}
	}
	return shared.Closed, nil
}

// clean ends all processes of the thread's tools, and closes the thread.
func (s *thread) clean(ctx context.Context) error {
	err := s.endTools(ctx)
	if s.id == "" {
		return err
	}
	s.server.forgetTerms(s.id)
	ask, cancel := context.WithTimeout(ctx, s.opts().Grace)
	defer cancel()
	return errors.Join(err, ignoreRefusal(s.server.Peer().Call(ask, "thread/unsubscribe", map[string]any{"threadId": s.id}, nil)))
}

// ignoreRefusal returns nil if err means that Codex rejected a request. Codex does so if the thread or the method does
// not exist. ignoreRefusal returns other errors unchanged.
func ignoreRefusal(err error) error {
	var refused *rpc.Error
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// endTools ends all processes that the thread's tools started.
func (s *thread) endTools(ctx context.Context) error {
	var err error
	if s.id != "" {
		ask, cancel := context.WithTimeout(ctx, s.opts().Grace)
		defer cancel()
		// Ignore a rejection of this request, because sweep below ends the processes, too.
		params := map[string]any{"threadId": s.id}
		err = ignoreRefusal(s.server.Peer().Call(ask, "thread/backgroundTerminals/clean", params, nil))
	}
	return errors.Join(err, s.server.provider.sweep(ctx, threadVar+"="+s.marker))
}

// Steer implements cli.Steerer.
func (s live) Steer(ctx context.Context, req cli.Request) error {
	t, ok := s.Running().(*liveTurn)
	if !ok {
		return cli.ErrNoTurn
	}
	return t.steer(ctx, req)
}

// sweepScript ends every process whose environment contains the argument $1, but not itself. It sends TERM, and one
// second later KILL, until no such process is left. The script runs where the agent runs, which may be in a container.
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

// sweep ends every process whose environment contains entry, such as "DUCTOR_THREAD=x".
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
