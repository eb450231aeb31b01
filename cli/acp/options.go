package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"ductor/cli"
)

// DefaultCallLimit is the default of Options.CallLimit.
const DefaultCallLimit = 30 * time.Second

// Options make a Provider. Agent, Path and Launcher are required; the zero value of the others is usable.
type Options struct {
	cli.ProviderOptions
	Agent cli.Agent // the name users know it by
	Args  []string  // that make it speak the protocol on its standard input and output
	// Argv gives the further arguments a process for req needs. Requests of which it says the same may share
	// a process. Nil is none.
	Argv func(req cli.Request) []string
	// OwnFiles gives the files of ours that a command line names. Nil is none.
	OwnFiles func(args []string) []string
	// ExtraEnv is added to the environment of a process for req; what the request says wins. May be nil.
	ExtraEnv func(req cli.Request) map[string]string
	// HomeVars are names or NAME_* patterns of variables that lead the agent to where it keeps what it knows. A session
	// with a home of its own does not see them.
	HomeVars []string
	// Models are what users may pick, for an agent that does not list any itself, or too many.
	Models []cli.Model
	// NoWorkspace keeps from the agent that files can be read and written, and commands run, through ductor. They are served
	// in the directories of the conversation only, but as the user ductor runs as, and on the machine ductor runs on: set it
	// for an agent in a container.
	NoWorkspace bool
	// Programs are the quirks of programs, by the name that each calls itself.
	Programs map[string]Quirks
	// Resuming is called before a session is resumed, with the environment of its agent. Nil does nothing.
	Resuming func(ctx context.Context, env []string, id cli.AgentSessionID) error
	// Login says what to do when the agent is not logged in: one sentence.
	Login string
	// Auth looks for the agent's log-in; nil asks the agent itself, by opening a session.
	Auth func(ctx context.Context) cli.Auth

	// Background gets text that follows the reply that ended a turn. It is called from a goroutine of the session and must not block for
	// long. Nil drops it.
	Background func(cli.Conversation, cli.BackgroundResult)

	StartLimit time.Duration // for a process to be ready; shared.DefaultStartLimit when 0
	CallLimit  time.Duration // for any request but a prompt to be answered

	quirks Quirks // see agentProcess.become
}

// Quirks are ways in which an agent differs from the protocol's text.
type Quirks struct {
	// LateHistory is for an agent that ends the replay of a loaded session with available_commands_update. Of others only silence
	// shows that nothing follows.
	LateHistory bool
	// TotalUsage is for an agent whose usage is that of the whole session, since its process has it.
	TotalUsage bool
	// Notices is for an agent that says words of its own as text of the answer: "Error: " and the reason, then the
	// end of the turn as if all were well; "Info: " and what it does.
	Notices bool
	// HidesTrouble is for an agent that ends a turn as if all were well when its model's stream broke or the model refused to answer.
	HidesTrouble bool
	// Forgets is for an agent that takes the prompt of a turn out of its session if the turn is cancelled while the model answers, or fails
	// before a tool ran.
	Forgets bool
	// PlanFiles is for an agent that names the file of a plan that it asks to carry out, and says as text that its mode changed.
	PlanFiles bool
	// DropsPictures is for an agent that takes pictures and passes them on only to a model that reads some; see session.eyes.
	DropsPictures bool
	// MissingIsEmpty is for an agent that looks for a file before it creates it, and takes each error for the end of that.
	MissingIsEmpty bool
	// CommandMarks are characters a prompt must not begin with to reach the model as it is.
	CommandMarks string
	// AuthMethod is the method to log in by, without a user, when an agent with this environment refuses a session for want of a
	// log-in; empty for none. Nil is none.
	AuthMethod func(env []string) string
	Tools      ToolQuirks
	// KindOf sorts an error of the agent. If it is nil, the function KindOf does.
	KindOf func(code int, text string) cli.FailureKind
}

// ToolQuirks are ways in which an agent tells of its tools.
type ToolQuirks struct {
	// Name finds the agent's own name of a tool; nil takes the kind.
	Name func(id, kind, title string) string
	// InputOf makes the input of a tool that is asked for, for an agent that gives none, of what it says of the tool.
	// Nil where that does not say all the tool would do; a nil function never does.
	InputOf func(Wish) json.RawMessage
	// Failure finds in a command's output its exit code, or why it failed; nil finds none.
	Failure func(output string) (code *int, why string)
}

// Wish is what an agent says of a tool that it asks for.
type Wish struct {
	Tool, Kind, Title string
	Text              string // that goes with it
	Changes           int    // how many files it shows changes of
}

func (o *Options) command(req cli.Request, key string) cli.Command {
	command := cli.Command{
		Path: o.Path, Args: o.argv(req), Dir: req.Dir, Env: o.env(req),
		For: cli.Purpose{Agent: o.Agent, Mode: cli.Live, Setting: key},
	}
	if o.OwnFiles != nil {
		command.Files = o.OwnFiles(command.Args)
	}
	return command
}

func (o *Options) argv(req cli.Request) []string {
	var more []string
	if o.Argv != nil {
		more = o.Argv(req)
	}
	return slices.Concat(o.Args, more, req.ExtraArgs)
}

func (o *Options) env(req cli.Request) []string {
	var extra map[string]string
	if o.ExtraEnv != nil {
		extra = o.ExtraEnv(req)
	}
	return cli.AtHome(o.ChildEnv(req, nil, extra), req.Home, o.HomeVars...)
}

// key is a digest of what binds a process: its command line, its environment and the directory it works in, from
// where agents read settings of a project. Requests with the same key share a process.
func (o *Options) key(req cli.Request) string {
	return cli.Digest(o.Path, o.argv(req), o.env(req), req.Dir)
}

// settings is a digest of what binds a session: a request with another needs another session.
func (o *Options) settings(req cli.Request) string {
	return cli.Digest(o.key(req), req.AddDirs, req.Servers)
}

func checkDirs(req cli.Request) error {
	for _, dir := range append([]string{req.Dir}, req.AddDirs...) {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("the directory %q is no absolute path", dir)
		}
	}
	return nil
}

// mcpServers are the servers as the protocol has them.
func mcpServers(servers []cli.ToolServer) []mcpServer {
	list := []mcpServer{}
	for _, s := range servers {
		one := mcpServer{Name: s.Name, Command: s.Path, Args: append([]string{}, s.Args...), Env: []mcpVariable{}}
		for _, name := range s.VarNames() {
			one.Env = append(one.Env, mcpVariable{Name: name, Value: s.Env[name]})
		}
		list = append(list, one)
	}
	return list
}
