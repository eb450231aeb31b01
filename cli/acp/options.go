package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
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
	Args    []string      `toml:"args"` // arguments that make the program speak the protocol
	Env     []string      `toml:"env" check:"variables"`
	Models  []cli.ModelID `toml:"models"` // models that users can choose; empty for all models that the agent offers
	Model   cli.ModelID   `toml:"model"`
	// AuthMethod is the ID of one of the agent's log-in methods. The method must need no user. ductor uses the method
	// if the agent requires a log-in.
	AuthMethod string `toml:"auth_method"`
	// Holds contains the settings that make the agent respect a permission mode. It replaces the catalogue's settings
	// for the same mode.
	Holds map[cli.PermissionMode]Holding `toml:"holds"`
	// Project describes the settings that a project can contain for the agent. It replaces the catalogue's description.
	Project Project `toml:"project"`
	// Accounts are log-ins besides the agent's default one, by name.
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
	Agent cli.Agent // the name that users see
	Args  []string  // arguments that make the program speak the protocol
	// Argv returns additional arguments for the process that serves req. Requests with equal arguments can share a
	// process. Argv may be nil.
	Argv func(req cli.Request) []string
	// OwnFiles returns the files in args that ductor has written. If the agent runs in a container, ductor copies these
	// files there. OwnFiles may be nil.
	OwnFiles func(args []string) []string
	// ExtraEnv returns additional environment variables for the process that serves req. Variables of the request have
	// priority. ExtraEnv may be nil.
	ExtraEnv func(req cli.Request) map[string]string
	// HomeVars lists environment variables, as names or NAME_* patterns, that set the location of the agent's data. A
	// session with its own home directory runs without these variables.
	HomeVars []string
	// Models lists the models that users can choose. It is for agents that list no models, or too many.
	Models []cli.Model
	// Holds contains the settings that make the agent respect a permission mode. For a mode without an entry, ductor
	// looks for a mode of the agent with a similar name. If there is none, ductor refuses turns in the modes plan, ask
	// and accept-edits.
	Holds map[cli.PermissionMode]Holding
	// Project describes the settings that a project can contain for the agent. If Project.Files is empty, the
	// catalogue's description applies.
	Project Project
	// StartDir is the working directory of two kinds of processes:
	//
	//   - wrappers such as npx, which might otherwise start a program that a project contains
	//   - processes that ductor starts only to query the agent's log-in and models
	//
	// Each session works in the directory of its request.
	//
	// StartDir must have the same path for ductor and for the agent. Other users must not be able to write to StartDir
	// or its parents, because the agent would use settings from there. ductor creates StartDir if it is missing. The
	// default is the root directory.
	StartDir string
	// NoWorkspace prevents the agent from reading files, writing files and running commands through ductor. It must be
	// set for an agent in a container. Without it, ductor would access files and run commands outside of the container,
	// as its own user.
	NoWorkspace bool
	// Programs maps the name that a program reports to the program's quirks.
	Programs map[string]Quirks
	// Resuming is called before the agent resumes a session, with the environment of the agent's process. Resuming may
	// be nil.
	Resuming func(ctx context.Context, env []string, id cli.AgentSessionID) error
	// Spent returns the total cost of a session in US dollars, as ductor stored it after the session's last turn. It
	// returns nil if the cost is unknown. Spent may be nil.
	Spent func(ctx context.Context, id cli.AgentSessionID) *float64
	// Login explains to users in one sentence how to log in to the agent.
	Login string
	// AuthMethod is the ID of one of the agent's log-in methods. The method must need no user. ductor uses the method
	// if the agent requires a log-in.
	AuthMethod string
	// Memory stores how users log in to the agent. If Memory is nil, ductor forgets this when it restarts.
	Memory LoginMemory
	// Auth checks the agent's log-in. If it is nil, ductor checks the log-in by opening a session.
	Auth func(ctx context.Context) cli.Auth

	// Background receives text that arrives after the reply that ended a turn. A goroutine of the session calls
	// Background, so Background must not block for long. If Background is nil, such text is dropped.
	Background func(cli.Conversation, cli.BackgroundResult)

	CallLimit time.Duration // maximum time for a response, except to a prompt; default: DefaultCallLimit

	quirks Quirks
	advice string // how users can log in by a method that the agent offers
	known  Entry  // catalogue entry for the program's path

	reported Entry // catalogue entry for the name that the program itself reports
}

// Quirks describes how an agent deviates from the protocol, or adds to it.
type Quirks struct {
	// LateHistory is set if the agent sends the update available_commands_update after it has replayed the history of a
	// loaded session. For other agents, ductor waits for silence to detect the end of the replay.
	LateHistory bool
	// Notices is set if the agent adds its own texts to the model's answer. A text that starts with "Error: " is an
	// error, after which the agent ends the turn normally. Other texts start with "Info: ".
	Notices bool
	// HiddenFailure returns the failure of a turn that the agent reported as a success. For example, the model's stream
	// may have broken, or the model may have refused to answer. HiddenFailure returns nil if the turn has succeeded.
	// ductor calls it only for turns without tool calls. HiddenFailure may be nil.
	HiddenFailure func(agent cli.Agent, answer string, r cli.Result) *cli.Failure
	// Forgets is set if the agent removes the prompts of some turns from the session's history. These are turns that
	// were cancelled while the model answered, and turns that failed before a tool ran.
	Forgets bool
	// IsModeNotice reports whether a text of the agent only announces a change of its mode. IsModeNotice may be nil.
	IsModeNotice func(text string) bool
	// DropsPictures is set if the agent accepts pictures even if its model cannot read them. The model then does not
	// receive the pictures.
	DropsPictures bool
	// MissingIsEmpty is set if the agent cannot create a file without reading it first. If such an agent reads a file
	// that does not exist, ductor returns an empty file instead of an error.
	MissingIsEmpty bool
	// CommandMarks lists the characters with which the agent's own commands start. The agent would not pass a prompt
	// that starts with one of them to the model unchanged.
	CommandMarks string
	// AuthMethod returns the ID of a method for a log-in without a user, or "" if the agent's environment allows none.
	// ductor calls it after the agent rejected a session because of a missing log-in. AuthMethod may be nil.
	AuthMethod func(env []string) string
	Tools      ToolQuirks
	Usage      UsageQuirks
	// KindOf classifies an error of the agent. If it is nil, KindOf of this package applies.
	KindOf func(code int, text string) cli.FailureKind
}

// ToolQuirks describes how an agent reports its tools.
type ToolQuirks struct {
	// Name returns the agent's own name for a tool. If it is nil, the tool's kind is the name.
	Name func(id, kind, title string) string
	// InputOf derives the input of a tool from the agent's description, for agents that send no input. It returns nil
	// if the description does not cover everything that the tool would do. InputOf may be nil.
	InputOf func(Wish) json.RawMessage
	// Failure examines the output of a command. It returns the exit code, or the reason why the command failed. Failure
	// may be nil.
	Failure func(output string) (code *int, why string)
	// PlanFile returns the path of the file with the plan that needs the user's approval, or "" for other tools. It is
	// for agents that send this path instead of the plan. PlanFile may be nil.
	PlanFile func(id, title string) string
}

// UsageQuirks describes how an agent reports the token usage of a turn.
type UsageQuirks struct {
	// Total is set if the agent reports the token usage since its process loaded the session, not the usage of each
	// turn.
	Total bool
	// InMeta reads the model and the usage from the metadata of the reply to a prompt. It returns zero values if the
	// metadata does not contain them. InMeta may be nil.
	InMeta func(meta json.RawMessage) (cli.ModelID, cli.Consumption)
}

// Wish is an agent's description of a tool that it wants to use.
type Wish struct {
	Tool, Kind, Title string
	Text              string // text of the permission request
	Changes           int    // number of files whose changes the agent shows
}

// command returns the command that starts a process for req. It creates StartDir if the process starts there.
func (o *Options) command(req cli.Request, key string) (cli.Command, error) {
	command := cli.Command{
		Path: o.Path, Args: o.argv(req), Dir: o.startDir(req), Env: o.env(req),
		For: cli.Purpose{Agent: o.Agent, Mode: cli.Live, Setting: key},
	}
	if o.OwnFiles != nil {
		command.Files = o.OwnFiles(command.Args)
	}
	if command.Dir == o.StartDir {
		if err := os.MkdirAll(o.StartDir, 0o700); err != nil {
			return command, o.failure(err)
		}
	}
	return command, nil
}

// startDir returns the working directory of a process. Usually it is the directory of the process's sessions. Gemini
// and others read settings only there, and mention the directory in their requests. A wrapper such as npx starts in
// StartDir, so that it does not run a program of the project.
func (o *Options) startDir(req cli.Request) string {
	if slices.Contains(searchers(), filepath.Base(o.Path)) {
		return o.StartDir
	}
	return req.Dir
}

// searchers returns the names of wrappers that search their working directory for the wanted program or module. If a
// project contains code with this name, the wrapper runs the project's code.
func searchers() []string {
	return []string{"npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "uv", "uvx", "pipx", "python", "python3"}
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
	// Sessions with other servers share the process, so its environment is only for ductor's own servers.
	req.Servers = cli.WithoutForeign(req.Servers)
	env := map[string]string{}
	maps.Copy(env, req.Env)
	maps.Copy(env, o.vars(req)) // these variables have priority over those of the request
	// Set this variable for every agent, because any agent may be a wrapper of Claude. Without the variable, Claude
	// starts a command in the directory in which the previous command ended.
	env["CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR"] = "1"
	req.Env = env
	return cli.AtHome(o.ChildEnv(req, nil, extra), req.Home, o.HomeVars...)
}

// key returns a digest of everything that determines a process: its command line, its environment, the directory of its
// sessions, and whether it may use the project's settings. Requests with the same key share a process.
func (o *Options) key(req cli.Request) string {
	return cli.Digest(o.Path, o.argv(req), o.env(req), req.Dir, req.Project == cli.WithProject)
}

// settings returns a digest of everything that determines a session. Requests with different digests need different
// sessions.
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
