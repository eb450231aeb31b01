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
	Args    []string      `toml:"args"` // make it speak the protocol
	Env     []string      `toml:"env" check:"variables"`
	Models  []cli.ModelID `toml:"models"` // to choose from; empty: what the agent offers
	Model   cli.ModelID   `toml:"model"`
	// AuthMethod is the agent's name of a way to log in that needs no user. Processes that require a log-in use it.
	AuthMethod string `toml:"auth_method"`
	// Holds replaces the built-in entries of the same modes.
	Holds map[cli.PermissionMode]Holding `toml:"holds"`
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
}

// Options configures a Provider. Agent, Path and Launcher are required; the other fields may be zero.
type Options struct {
	cli.ProviderOptions
	Agent cli.Agent // the name that users know
	Args  []string  // arguments that select the protocol on standard input and output
	// Argv returns additional arguments of a process for req. Requests with the same arguments may share a process.
	// Argv may be nil.
	Argv func(req cli.Request) []string
	// OwnFiles returns the files of ductor that a command line names. It may be nil.
	OwnFiles func(args []string) []string
	// ExtraEnv returns variables to add to the environment of a process for req. Values of the request have priority.
	// ExtraEnv may be nil.
	ExtraEnv func(req cli.Request) map[string]string
	// HomeVars lists the environment variables that contain the place of the agent's data. An entry is a name or a
	// pattern such as NAME_*. ductor removes these variables from a session that has its own home.
	HomeVars []string
	// Models are the models that users can choose. They are for an agent that lists no models itself, or too many.
	Models []cli.Model
	// Holds lists how the agent is held to permission modes. For other modes, the package uses a mode of the agent's
	// own with a fitting name. If there is none, it runs no turn in plan, ask and accept-edits.
	Holds map[cli.PermissionMode]Holding
	// NoWorkspace hides ductor's ability to read and write files and run commands for the agent. ductor does that only
	// in the directories of the conversation, but as its own user and on its own machine. Set NoWorkspace for an agent
	// in a container.
	NoWorkspace bool
	// Programs has the quirks of programs, by the names that the programs report.
	Programs map[string]Quirks
	// Resuming is called before a session is resumed, with the environment of its agent. It may be nil.
	Resuming func(ctx context.Context, env []string, id cli.AgentSessionID) error
	// Spent returns what a session had cost at the end of its last turn, in US dollars, if a previous process of ductor
	// stored that; see cli.Fill. It returns nil if that is unknown. It may be nil.
	Spent func(ctx context.Context, id cli.AgentSessionID) *float64
	// Login tells the user in one sentence how to log the agent in.
	Login string
	// AuthMethod is the agent's name of a way to log in without a user, for processes that require a log-in.
	AuthMethod string
	// Auth checks the agent's log-in. If it is nil, the package opens a session to check the log-in.
	Auth func(ctx context.Context) cli.Auth

	// Background gets text that arrives after the reply that ended a turn. A goroutine of the session calls it, so it
	// must not block for long. If it is nil, the text is dropped.
	Background func(cli.Conversation, cli.BackgroundResult)

	StartLimit time.Duration // for a process to be ready; default: shared.DefaultStartLimit
	CallLimit  time.Duration // for the answer to any request but a prompt

	quirks Quirks // see agentProcess.become
	advice string // Login in the words of the agent's offers
	known  Entry  // of the catalogue, by the program's file

	reported Entry // of the catalogue, by the name that the program reports
}

// Quirks describe how an agent deviates from the protocol.
type Quirks struct {
	// LateHistory: the agent ends the replay of a loaded session with available_commands_update. For other agents, only
	// silence shows the end of the replay.
	LateHistory bool
	// TotalUsage: the agent reports the usage of the whole session, counted since its process loaded the session.
	TotalUsage bool
	// Notices: the agent adds its own text to the answer. It reports an error as "Error: " with the reason, and then
	// ends the turn normally. It reports anything else as "Info: " with a text.
	Notices bool
	// HidesTrouble: the agent ends a turn normally if its model's stream broke or the model refused to answer.
	HidesTrouble bool
	// Forgets: the agent removes the prompt of a turn from its session in two cases: the turn is cancelled while the
	// model answers, or it fails before a tool ran.
	Forgets bool
	// PlanFiles: the agent names the file of a plan that it wants to carry out, and reports a change of its mode as
	// text.
	PlanFiles bool
	// DropsPictures: the agent accepts pictures, but passes them on only to a model that reads pictures; see
	// session.eyes.
	DropsPictures bool
	// MissingIsEmpty: before the agent creates a file, it reads the file, and gives up after any error. So ductor
	// reports a missing file as empty.
	MissingIsEmpty bool
	// CommandMarks are characters that start commands. A prompt that starts with one of them would not reach the model
	// unchanged.
	CommandMarks string
	// AuthMethod returns the method for a log-in without a user. It is used if an agent with this environment rejects a
	// session because it is not logged in. It returns "" if it knows no such method. It may be nil.
	AuthMethod func(env []string) string
	Tools      ToolQuirks
	// KindOf classifies an error of the agent. nil means the function KindOf.
	KindOf func(code int, text string) cli.FailureKind
}

// ToolQuirks describe how an agent reports its tools.
type ToolQuirks struct {
	// Name returns the agent's own name of a tool. nil uses the kind.
	Name func(id, kind, title string) string
	// InputOf derives the input of a requested tool from the agent's description, for an agent that sends no input. It
	// returns nil if the description does not cover everything that the tool would do. It may be nil.
	InputOf func(Wish) json.RawMessage
	// Failure finds the exit code in a command's output, or the reason why the command failed. It may be nil.
	Failure func(output string) (code *int, why string)
}

// Wish is an agent's description of a tool that it wants to use.
type Wish struct {
	Tool, Kind, Title string
	Text              string // that comes with it
	Changes           int    // number of files with shown changes
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
	return slices.Concat(o.Args, more, h.Args, req.ExtraArgs)
}

func (o *Options) env(req cli.Request) []string {
	extra := o.known.Env
	if o.ExtraEnv != nil {
		extra = o.ExtraEnv(req)
	}
	req.Servers = cli.WithoutForeign(req.Servers)         // a session gets the variables of the others
	if h, _ := o.listed(req.Permission); len(h.Env) > 0 { // nothing else may change these
		all := maps.Clone(req.Env)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, h.Env)
		req.Env = all
	}
	return cli.AtHome(o.ChildEnv(req, nil, extra), req.Home, o.HomeVars...)
}

// key returns a digest of the settings of a process: its command line, its environment and its working directory
// (agents read a project's settings there). Requests with the same key share a process.
func (o *Options) key(req cli.Request) string {
	return cli.Digest(o.Path, o.argv(req), o.env(req), req.Dir)
}

// settings returns a digest of the settings of a session. A request with a different digest needs another session.
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

// mcpServers returns the servers in the protocol's format, without those that the agent cannot reach.
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
