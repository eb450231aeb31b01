package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ductor/cli"
)

// DefaultCallLimit is the default of Options.CallLimit.
const DefaultCallLimit = 30 * time.Second

// Settings configures an agent that speaks the Agent Client Protocol on its standard input and output.
type Settings struct {
	Enabled bool          `toml:"enabled" default:"true"`
	Path    string        `toml:"path" check:"program"`
	Args    []string      `toml:"args"` // arguments that select the protocol
	Env     []string      `toml:"env" check:"variables"`
	Models  []cli.ModelID `toml:"models"` // models for the menu; empty for the models that the agent offers
	Model   cli.ModelID   `toml:"model"`
	// AuthMethod is the agent's ID of a log-in method that needs no user. Processes that require a log-in use it.
	AuthMethod string `toml:"auth_method"`
	// Holds replaces the catalogue's entries for the same permission modes.
	Holds map[cli.PermissionMode]Holding `toml:"holds"`
	// Project replaces the catalogue's entry.
	Project Project `toml:"project"`
	// Accounts are log-ins other than the agent's default one, by name.
	Accounts map[string]cli.AccountSettings `toml:"accounts"`
}

// Check implements config.checker.
func (s Settings) Check(problem func(key, format string, args ...any)) {
	if strings.TrimSpace(s.Path) == "" {
		problem("path", "an agent needs a program")
	}
	for mode, h := range s.Holds {
		switch {
		case !slices.Contains(cli.PermissionModes(), mode):
			problem("holds", "%q is no permission mode; there are %v", string(mode), cli.PermissionModes())
		case (h.Option == "") != (h.Value == ""):
			problem("holds", "%s needs an option and its value together", mode)
		}
	}
	if err := s.Project.check(); err != nil {
		problem("project", "%v", err)
	}
}

// Options configures a Provider. Agent, Path and Launcher are required; the other fields may be zero.
type Options struct {
	cli.ProviderOptions
	Agent cli.Agent // name for users
	Args  []string  // arguments that select the protocol on standard input and output
	// Argv returns additional arguments for the process of req. Requests with equal arguments can share a process. It
	// may be nil.
	Argv func(req cli.Request) []string
	// OwnFiles returns the files of ductor that args names. It may be nil.
	OwnFiles func(args []string) []string
	// ExtraEnv returns additional variables for the process of req. Variables of the request have priority. It may be
	// nil.
	ExtraEnv func(req cli.Request) map[string]string
	// HomeVars lists the environment variables that set the location of the agent's data, as names or NAME_* patterns.
	// ductor removes them for a session with its own home.
	HomeVars []string
	// Models lists the models for users. It is for agents that list no models, or too many.
	Models []cli.Model
	// Holds describes how ductor makes the agent respect permission modes. For a missing mode, the package uses a mode
	// of the agent with a fitting name. If the agent has none, turns in plan, ask and accept-edits are refused.
	Holds map[cli.PermissionMode]Holding
	// Project describes the settings of projects for the agent. Without files, the catalogue's entry applies.
	Project Project
	// ProbeDir is the directory of processes that ductor only asks for the agent's log-in and models. It must have the
	// same path for ductor and for the agent. Nobody else may write to it or above it, because settings there would
	// count as those of a project. Empty means os.TempDir.
	ProbeDir string
	// NoWorkspace stops ductor from offering the agent to read and write files and to run commands. ductor would do so
	// on its own machine and as its own user, so it must be set for an agent in a container. ductor serves only files
	// in the directories of the conversation.
	NoWorkspace bool
	// Programs maps names that programs report to their quirks.
	Programs map[string]Quirks
	// Resuming is called before the agent resumes a session. env is the agent's environment. It may be nil.
	Resuming func(ctx context.Context, env []string, id cli.AgentSessionID) error
	// Spent returns what a session had cost at the end of its last turn, in US dollars, if a previous process of ductor
	// stored that; see cli.Fill. It returns nil if that is unknown. It may be nil.
	Spent func(ctx context.Context, id cli.AgentSessionID) *float64
	// Login explains to users in one sentence how to log the agent in.
	Login string
	// AuthMethod is the agent's ID of a log-in method that needs no user. Processes that require a log-in use it.
	AuthMethod string
	// Auth checks the agent's log-in. If it is nil, the package checks by opening a session.
	Auth func(ctx context.Context) cli.Auth

	// Background receives text that arrives after the final reply of a turn. A goroutine of the session calls
	// Background, so it must not block for long. If Background is nil, such text is dropped.
	Background func(cli.Conversation, cli.BackgroundResult)

	StartLimit time.Duration // for a process to be ready; default: shared.DefaultStartLimit
	CallLimit  time.Duration // for the answer to any request except a prompt

	quirks Quirks // set by agentProcess.become
	advice string // Login with the ways that the agent offers
	known  Entry  // catalogue entry for the program's path

	reported Entry // catalogue entry for the name that the program reports
}

// Quirks describe how an agent deviates from the protocol, or adds to it.
type Quirks struct {
	// LateHistory is set if the agent ends the replay of a loaded session with available_commands_update. For other
	// agents, only silence shows the end of the replay.
	LateHistory bool
	// TotalUsage is set if the agent reports the usage of the whole session since its process loaded the session.
	TotalUsage bool
	// Notices is set if the agent adds its own text to the answer. "Error: " introduces an error, after which the agent
	// ends the turn normally. "Info: " introduces any other text.
	Notices bool
	// HidesTrouble is set if the agent ends the turn normally after its model's stream broke or the model refused to
	// answer.
	HidesTrouble bool
	// Forgets is set if the agent can remove the prompt of a turn from its session. It does so if the turn was
	// cancelled while the model answered, or failed before a tool ran.
	Forgets bool
	// PlanFiles is set if the agent names the file of a plan for which it requests approval, and announces changes of
	// its mode as text.
	PlanFiles bool
	// DropsPictures is set if the agent accepts pictures, but drops them if its model reads none; see session.eyes.
	DropsPictures bool
	// MissingIsEmpty is set if the agent reads a file before it creates it, and stops on an error. ductor then reports
	// a missing file as empty.
	MissingIsEmpty bool
	// CommandMarks lists the characters that start commands. A prompt that starts with such a character would not reach
	// the model unchanged.
	CommandMarks string
	// AuthMethod returns the method for a log-in without a user, or "" if env allows none. It is called after the agent
	// rejected a session because it was not logged in. It may be nil.
	AuthMethod func(env []string) string
	Tools      ToolQuirks
	// KindOf classifies an error of the agent. nil means the package's KindOf.
	KindOf func(code int, text string) cli.FailureKind
}

// ToolQuirks describe how an agent reports its tools.
type ToolQuirks struct {
	// Name returns the agent's own name of a tool. nil means the tool's kind.
	Name func(id, kind, title string) string
	// InputOf derives the input of a requested tool from the agent's description. It is for agents that send no input.
	// It returns nil if the description does not cover everything that the tool would do. It may be nil.
	InputOf func(Wish) json.RawMessage
	// Failure parses a command's output for its exit code, or the reason of its failure. It may be nil.
	Failure func(output string) (code *int, why string)
}

// Wish is an agent's description of a tool that it wants to use.
type Wish struct {
	Tool, Kind, Title string
	Text              string // text that comes with the request
	Changes           int    // number of files whose changes the agent shows
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
	h, _ := o.listed(req.Permission)
	return slices.Concat(o.Args, more, h.Args, o.projectArgs(req), req.ExtraArgs)
}

func (o *Options) env(req cli.Request) []string {
	extra := o.known.Env
	if o.ExtraEnv != nil {
		extra = o.ExtraEnv(req)
	}
	req.Servers = cli.WithoutForeign(req.Servers) // other servers belong to a session, not to the process
	if vars := o.vars(req); len(vars) > 0 {       // later variables must not override these
		for name, value := range req.Env {
			if _, held := vars[name]; !held {
				vars[name] = value
			}
		}
		req.Env = vars
	}
	return cli.AtHome(o.ChildEnv(req, nil, extra), req.Home, o.HomeVars...)
}

// key returns a digest of the settings of a process: its command line, its environment and its working directory, where
// agents read a project's settings. Requests with the same key share a process. An agent reads settings that were just
// allowed in a new process.
func (o *Options) key(req cli.Request) string {
	return cli.Digest(o.Path, o.argv(req), o.env(req), req.Dir, req.Project == cli.WithProject)
}

// settings returns a digest of the settings of a session. Requests with different digests need different sessions.
func (o *Options) settings(req cli.Request) string {
	return cli.Digest(o.key(req), req.AddDirs, req.Servers, o.meta(req))
}

func checkDirs(req cli.Request) error {
	for _, dir := range append([]string{req.Dir}, req.AddDirs...) {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("the directory %q is no absolute path", dir)
		}
	}
	return nil
}

// mcpServers converts servers to the protocol's format. It omits servers that the agent cannot reach.
func mcpServers(servers []cli.ToolServer, http bool) []any {
	list := []any{}
	for _, s := range servers {
		switch {
		case s.URL == "":
			list = append(list, mcpServer{Name: s.Name, Command: s.Path, Args: append([]string{}, s.Args...),
				Env: pairs(s.Env)})
		case http:
			list = append(list, httpServer{Type: "http", Name: s.Name, URL: s.URL,
				Headers: pairs(s.HeadersBy(s.Value))})
		}
	}
	return list
}

func pairs(values map[string]string) []mcpVariable {
	list := []mcpVariable{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, mcpVariable{Name: name, Value: values[name]})
	}
	return list
}
