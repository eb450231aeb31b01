// Package workspace serves the requests that an agent sends to its client by the Agent Client Protocol: it reads and
// writes files, and runs commands, in the directories of one session. It asks no user and shows nothing. Package acp
// passes it the requests and shows the results.
package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/cli/rpc"
)

// Methods whose results users see. See services for all methods.
const (
	MethodRead  = "fs/read_text_file"
	MethodWrite = "fs/write_text_file"
	MethodRun   = "terminal/create"
)

// Options configures a Workspace.
type Options struct {
	Launcher  cli.Launcher
	Agent     cli.Agent // the agent that runs the commands
	Env       []string  // environment of commands
	Dirs      []string  // absolute directories that the agent may use, the working directory first
	Protected []string  // files of ductor that the agent must not read or write
	// MissingIsEmpty is set if the agent must read a missing file as an empty one, instead of receiving an error.
	MissingIsEmpty bool
	Mode           cli.PermissionMode
	// Ended receives the end of each command. It is called from a goroutine of the command.
	Ended func(terminal string, end cli.ToolEnded)
}

// Workspace reads files, writes files and runs commands for an agent, only in the directories of the session. Safe for
// concurrent use.
type Workspace struct {
	opts Options

	mu       sync.Mutex
	mode     cli.PermissionMode
	next     int
	commands map[string]*command // by terminal ID; nil after Close
}

// New returns a Workspace. The caller must close it.
func New(o Options) *Workspace {
	return &Workspace{opts: o, mode: o.Mode, commands: make(map[string]*command)}
}

// SetMode sets the permission mode for the agent's next requests. In the mode cli.Plan, the agent cannot write files or
// run commands.
func (w *Workspace) SetMode(mode cli.PermissionMode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mode = mode
}

// Close stops all running commands with their descendants. Further requests fail.
func (w *Workspace) Close() error {
	w.mu.Lock()
	all := w.commands
	w.commands = nil
	w.mu.Unlock()
	var errs []error
	for _, c := range all {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

// mayChange returns an error if nothing may be written or run now.
func (w *Workspace) mayChange() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.commands == nil:
		return errors.New("the session is closed")
	case w.mode == cli.Plan:
		return errors.New("the conversation is in plan mode: nothing may be changed or run")
	}
	return nil
}

// service handles the requests of one method.
type service func(ctx context.Context, w *Workspace, params json.RawMessage) (any, error)

// services returns the service of each method.
var services = sync.OnceValue(func() map[string]service {
	return map[string]service{
		MethodRead:               serving((*Workspace).read),
		MethodWrite:              serving((*Workspace).write),
		MethodRun:                serving((*Workspace).run),
		"terminal/release":       serving((*Workspace).release),
		"terminal/output":        onCommand((*command).output),
		"terminal/wait_for_exit": onCommand((*command).wait),
		"terminal/kill":          onCommand((*command).kill),
	}
})

// serving converts a function with decoded parameters to a service.
func serving[P any](f func(*Workspace, context.Context, P) (any, error)) service {
	return func(ctx context.Context, w *Workspace, raw json.RawMessage) (any, error) {
		var p P
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, badParams("the request cannot be read: %v", err)
		}
		return f(w, ctx, p)
	}
}

// Serves reports whether Serve knows a method.
func Serves(method string) bool { return services()[method] != nil }

// Serve handles a request. Its result is the response to the agent: a ReadResult, a WriteResult, a RunResult, or
// another value for encoding/json. The caller must check with Serves that the method is known. If the error is an
// *rpc.Error, the caller sends its code to the agent.
func (w *Workspace) Serve(ctx context.Context, method string, params json.RawMessage) (any, error) {
	return services()[method](ctx, w, params)
}

// shellScript matches a shell with the flag that precedes a script, such as "bash -c".
var shellScript = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:/bin/)?(?:ba|z)?sh -l?c$`)
})

// Subject returns the file or the command line that a request concerns. It returns empty texts if the parameters are
// unreadable. For a script that a shell runs, the command line is the script.
func Subject(params json.RawMessage) (path, line string) {
	var p struct {
		Path    string   `json:"path"`
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	_ = json.Unmarshal(params, &p) // Serve rejects unreadable parameters
	if len(p.Args) == 2 && shellScript().MatchString(p.Command+" "+p.Args[0]) {
		return p.Path, p.Args[1]
	}
	return p.Path, strings.Join(append([]string{p.Command}, p.Args...), " ")
}

func badParams(format string, args ...any) error {
	return &rpc.Error{Code: rpc.CodeBadParams, Message: fmt.Sprintf(format, args...)}
}
