package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"
)

// Defaults of ProviderOptions, and of whoever ends processes or waits for them.
const (
	DefaultStall     = 5 * time.Minute
	DefaultToolStall = 30 * time.Minute
	DefaultGrace     = 2 * time.Second
)

// ProviderOptions are what every dialect is made with. The zero value of every field but Launcher is usable.
type ProviderOptions struct {
	Launcher Launcher // where processes start; required
	Path     string   // the program; what the dialect says when empty
	// Env is the environment that a child's is picked from; os.Environ when nil.
	Env      func() []string
	AllowEnv []string // further names or NAME_* patterns that a child may see
	// OwnerHome is the home of whoever runs ductor, on the machine the agent runs on. Sessions with homes of their own share some
	// of what is in there. Empty where there is none, as in a container.
	OwnerHome string
	// ReadFile reads log-ins and settings from where the agent runs; os.ReadFile when nil. An error has the agent itself asked.
	ReadFile func(path string) ([]byte, error)
	// Protected are ductor's own files and directories, absolute and with links resolved. No mode allows a request that
	// touches one of them: a user decides.
	Protected []string
	// Grace is how long a process may take to end when asked to; Stall how long the agent may be silent when no tool
	// runs, ToolStall when one does. The defaults of turn.StreamOptions when 0.
	Grace, Stall, ToolStall time.Duration
	Now                     func() time.Time // the clock durations are taken from; time.Now when nil
	Logger                  *slog.Logger     // discards when nil
}

// OrDefault is o with what was left out filled in; program is the Path of the agent.
func (o ProviderOptions) OrDefault(program string) ProviderOptions {
	o.Path = cmp.Or(o.Path, program)
	if o.Env == nil {
		o.Env = os.Environ
	}
	if o.ReadFile == nil {
		o.ReadFile = os.ReadFile
	}
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	o.Stall = cmp.Or(o.Stall, DefaultStall)
	o.ToolStall = cmp.Or(o.ToolStall, DefaultToolStall)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Allowing is o with names or NAME_* patterns of further variables that a child may see.
func (o ProviderOptions) Allowing(names ...string) ProviderOptions {
	o.AllowEnv = slices.Concat(names, o.AllowEnv)
	return o
}

// ChildEnv is what a process started for req sees, and nothing else: the variables of Env that any agent may see and
// those that allow and AllowEnv name; own, which is what the dialect says itself; above that what req says; those of its tool
// servers; and the chat it works for. See the function of this name.
func (o ProviderOptions) ChildEnv(req Request, allow []string, own map[string]string) []string {
	extra := map[string]string{}
	maps.Copy(extra, own)
	maps.Copy(extra, req.Env)
	for _, s := range req.Servers {
		maps.Copy(extra, s.Env)
	}
	if req.ChatID != 0 {
		extra[ChatIDVar] = strconv.FormatInt(req.ChatID, 10)
	}
	return ChildEnv(o.Env(), slices.Concat(BaseEnv(), allow, o.AllowEnv), extra)
}

// StartOnce starts the process of a turn that has one of its own. What command leaves out is that of the request. Errors are
// *Failure.
func (o ProviderOptions) StartOnce(ctx context.Context, agent Agent, req Request, command Command) (Process, error) {
	command.Path, command.Dir, command.Turn = o.Path, req.Dir, req.Turn
	command.For.Agent, command.For.Mode, command.For.Conversation = agent, OneShot, req.Conversation
	p, err := o.Launcher.Start(ctx, command)
	if err != nil {
		return nil, StartFailure(agent, err)
	}
	return p, nil
}

// Digest stands for values that bind a process or a session, of which none must be kept in clear.
func Digest(parts ...any) string {
	all, err := json.Marshal(parts)
	if err != nil { // texts, numbers and what is made of them can always be encoded
		return ""
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:16])
}

// StartFailure is the failure of a process of agent that a Launcher did not start.
func StartFailure(agent Agent, err error) *Failure {
	if errors.Is(err, fs.ErrNotExist) {
		return &Failure{Kind: NotInstalled, Agent: agent, Cause: err}
	}
	return AsFailure(agent, err)
}

// StartResult is the result of a turn that did not begin, because of err or since ctx was cancelled before.
func StartResult(ctx context.Context, agent Agent, err error) Result {
	if ctx.Err() != nil {
		return Cut(ctx, agent)
	}
	return Result{Err: AsFailure(agent, err)}
}
