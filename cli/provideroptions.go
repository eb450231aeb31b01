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

// Defaults of ProviderOptions. Other code that waits for processes uses the same values.
const (
	DefaultStall     = 5 * time.Minute
	DefaultToolStall = 30 * time.Minute
	DefaultGrace     = 2 * time.Second
)

// ProviderOptions configures a provider. Only Launcher is required.
type ProviderOptions struct {
	Launcher Launcher // starts the agent's processes
	Path     string   // the agent's program; empty means the provider's default
	// Env returns the environment from which agents may inherit variables. nil means os.Environ.
	Env      func() []string
	AllowEnv []string // additional variables that an agent may inherit: names or NAME_* patterns
	// OwnerHome is the home directory of the user who runs ductor, on the machine of the agent. Sessions with their own
	// homes share some files of this directory. OwnerHome is empty if the environment has no such directory, as in a
	// container.
	OwnerHome string
	// ReadFile reads the agent's files with credentials and settings in the agent's environment. nil means os.ReadFile.
	// If ReadFile fails, the provider asks the agent itself.
	ReadFile func(path string) ([]byte, error)
	// Protected lists ductor's own files and directories, as absolute paths with links resolved. If a request touches
	// one of them, no permission mode allows the request. Only a user can allow it.
	Protected []string
	Timing
	Now    func() time.Time // the clock; nil means time.Now
	Logger *slog.Logger     // nil discards all messages
}

// Timing limits how long agents and their processes may take. 0 means the default of the package that enforces the
// limit.
type Timing struct {
	Stall     time.Duration `toml:"stall" default:"5m" check:"1s..24h"`        // maximum silence while no tool runs
	ToolStall time.Duration `toml:"tool_stall" default:"30m" check:"1s..168h"` // maximum silence while a tool runs
	Grace     time.Duration `toml:"grace" default:"2s" check:"0..1m"`          // maximum time to end after SIGTERM
	Start     time.Duration `toml:"start" default:"2m" check:"1s..10m"`        // maximum time to start a shared process
	// StaleAfter limits the duration of a turn. The runner enforces the limit, even while ductor is not running.
	StaleAfter time.Duration `toml:"stale_after" default:"3h" check:"1m..720h"`
	// OrphanAfter limits how long a run continues while ductor is not running.
	OrphanAfter time.Duration `toml:"orphan_after" default:"15m" check:"1s..720h"`
}

// OrDefault returns o with defaults for fields that are zero. program is the default of Path.
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

// Allowing returns o with additional variables that agents may inherit. names may contain NAME_* patterns.
func (o ProviderOptions) Allowing(names ...string) ProviderOptions {
	o.AllowEnv = slices.Concat(names, o.AllowEnv)
	return o
}

// ChildEnv returns the complete environment of an agent's process for req. It combines the following variables. If a
// name occurs twice, the later value is used.
//   - the variables of Env whose names are in BaseEnv, allow or AllowEnv
//   - the variables in own, which the provider sets
//   - the variables of req
//   - the variables of req's tool servers
//   - the ID of req's chat
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

// StartOnce starts a process that serves only the turn of req. The caller sets the arguments and the environment in
// command; StartOnce sets the other fields. Errors are *Failure.
func (o ProviderOptions) StartOnce(ctx context.Context, agent Agent, req Request, command Command) (Process, error) {
	command.Path, command.Dir, command.Turn = o.Path, req.Dir, req.Turn
	command.For.Agent, command.For.Mode, command.For.Conversation = agent, OneShot, req.Conversation
	p, err := o.Launcher.Start(ctx, command)
	if err != nil {
		return nil, StartFailure(agent, err)
	}
	return p, nil
}

// Digest returns a hash of values. Providers compare hashes to find out whether a process or session has the settings
// that a request needs. They do not store the values themselves, which may be secret.
func Digest(parts ...any) string {
	all, err := json.Marshal(parts)
	if err != nil { // cannot happen: callers pass only texts, numbers and combinations of them
		return ""
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:16])
}

// StartFailure converts an error of Launcher.Start for an agent's process to a Failure.
func StartFailure(agent Agent, err error) *Failure {
	if errors.Is(err, fs.ErrNotExist) {
		return &Failure{Kind: NotInstalled, Agent: agent, Cause: err}
	}
	return AsFailure(agent, err)
}

// StartResult returns the Result of a turn that did not start, either because of err or because ctx was cancelled.
func StartResult(ctx context.Context, agent Agent, err error) Result {
	if ctx.Err() != nil {
		return Cut(ctx, agent)
	}
	return Result{Err: AsFailure(agent, err)}
}
