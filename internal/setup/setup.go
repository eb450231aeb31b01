package setup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/paircode"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// Given contains the answers that the owner has given on the command line. Run asks for all other answers.
type Given struct {
	Token                            secrets.Value
	Owner                            int64
	Project, Sandbox, Model, APIBase string
	Unattended                       bool // use the preset of every question, because no user is at the console
}

// Console interacts with the owner.
type Console interface {
	Say(format string, args ...any) // prints a line
	// Ask returns the answer to a question, or preset if the owner only presses Enter.
	Ask(ctx context.Context, question, preset string) (string, error)
	// Secret is like Ask, but does not show the answer while the owner types it.
	Secret(ctx context.Context, question string) (secrets.Value, error)
}

// World contains the functions with which a setup reaches other parts of ductor. All fields are required.
type World struct {
	Environment config.Environment
	Connect     func(config.Config) (API, error)
	Lock        func(config.Config) (release func(), err error) // locks the bot; fails if another ductor serves the bot
	Agents      func(context.Context, config.Config) ([]cli.AgentState, error)
	Engine      func(context.Context, config.Config) error // checks the container engine; fails if it does not answer
}

// Run asks for missing settings. Then it shows the owner how the configuration file at path will change, and writes the
// file if the owner agrees. Before the owner has agreed, it changes nothing. It preserves comments and other keys, and
// makes the file accessible only to this user. It returns ErrStopped if ctx ends before the file is written.
func Run(ctx context.Context, path string, given Given, on Console, world World) error {
	s := &setup{Console: on, world: world, given: given, path: path}
	if err := s.read(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.chooseServer, s.chooseToken, s.askOwner, s.askProject, s.askSandbox, s.offerAgents, s.askAgent, s.write} {
		err := step(ctx)
		if err != nil && ctx.Err() != nil {
			return ErrStopped
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrStopped means that the owner stopped a setup before the setup wrote anything.
var ErrStopped = errors.New("stopped; nothing was written")

// read reads the configuration file. If it contains mistakes, read offers to replace it by a new one.
func (s *setup) read(ctx context.Context) (err error) {
	s.cfg, s.before, err = config.Draft(s.path, s.world.Environment)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("read what is configured: %w", err)
	if !errors.As(err, new(*config.Invalid)) || s.given.Unattended {
		return err
	}
	s.Say("%v", err)
	s.backup = freeBackup(s.path)
	agreed, askErr := Agree(ctx, s.Console, "Begin with a new file, and keep this one as "+s.backup+"?", "no")
	if askErr != nil && ctx.Err() != nil {
		return ErrStopped
	}
	if askErr != nil || !agreed {
		return errors.Join(askErr, err)
	}
	if s.replaced, err = os.ReadFile(s.path); err != nil {
		return fmt.Errorf("read what is configured: %w", err)
	}
	s.cfg = config.Default()
	s.cfg.File = s.path
	return nil
}

// freeBackup returns the first name of path.bak, path.bak.2, path.bak.3, … that no file has.
func freeBackup(path string) string {
	path += ".bak"
	name := path
	for i := 2; ; i++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = path + "." + strconv.Itoa(i)
	}
}

type setup struct {
	Console
	world  World
	given  Given
	path   string
	before []byte
	// If the owner has agreed to replace a file with mistakes, replaced is the content of this file. Otherwise it is
	// nil.
	replaced []byte
	backup   string // where the setup keeps the replaced file
	cfg      config.Config
	changes  []config.Change
	api      API
	bot      string
	dir      string // working directory of agents; created after the owner has agreed
}

func (s *setup) addChange(table, key string, value any, comment string) {
	s.changes = append(s.changes, config.Change{Table: table, Key: key, Value: value, Comment: comment})
}

func (s *setup) chooseServer(context.Context) error {
	if s.given.APIBase != "" && s.given.APIBase != s.cfg.Telegram.APIBase {
		if err := config.CheckURL(s.given.APIBase, "https://api.telegram.org"); err != nil {
			return fmt.Errorf("the address of the Bot API %w, not %q", err, s.given.APIBase)
		}
		s.cfg.Telegram.APIBase = s.given.APIBase
		s.addChange("telegram", "api_base", s.given.APIBase, "Where the Bot API is.")
	}
	return nil
}

// maxCodes is the number of pairing codes that the setup tries before it gives up.
const maxCodes = 3

// askOwner determines the owner: from the configuration, from the command line, or by pairing.
func (s *setup) askOwner(ctx context.Context) error {
	users := s.cfg.Telegram.AllowedUsers
	owner := s.given.Owner
	if owner == 0 && len(users) > 0 {
		s.Say("The owner is the user %d.", users[0])
		return nil
	}
	if owner == 0 {
		who, err := s.pair(ctx)
		if err != nil {
			return err
		}
		s.Say("You are %s, user %d.", who.Name, who.ID)
		owner = who.ID
	}
	if len(users) > 0 && users[0] == owner {
		return nil
	}
	users = append([]int64{owner}, slices.DeleteFunc(slices.Clone(users),
		func(id int64) bool { return id == owner })...)
	s.cfg.Telegram.AllowedUsers = users
	s.addChange("telegram", "allowed_users", users, "The users that ductor answers; the first is the owner.")
	return nil
}

// pair shows a code and waits until a user sends the code to the bot. If the code expires, or after too many wrong
// attempts, pair shows a new code.
func (s *setup) pair(ctx context.Context) (Paired, error) {
	release, err := s.world.Lock(s.cfg)
	if err != nil {
		return Paired{}, fmt.Errorf("wait for the code: %w", err)
	}
	defer release()
	for try := 1; ; try++ {
		code, err := paircode.New(rand.Reader)
		if err != nil {
			return Paired{}, err
		}
		s.Say("Open %s on your phone and press Start,", paircode.Link(s.bot, code))
		s.Say("or send this code to @%s within %s: %s", s.bot, "10 minutes", code)
		who, err := Pair(ctx, s.api, code, s.Say)
		switch {
		case who.ID != 0:
			return who, nil // ignore the error: only the greeting failed
		case try < maxCodes && (errors.Is(err, ErrExpired) || errors.Is(err, ErrAttempts)):
			s.Say("No owner yet: %v. Here is a new one.", err)
		default:
			return Paired{}, fmt.Errorf("learn who the owner is: %w", err)
		}
	}
}

func (s *setup) askProject(ctx context.Context) error {
	had := s.cfg.Projects
	dir, err := s.givenOrAsk(ctx, s.given.Project, "The directory that agents work in", had.DefaultDir)
	if err != nil {
		return err
	}
	if home := s.world.Environment.Getenv("HOME"); dir == "~" || strings.HasPrefix(dir, "~/") {
		dir = filepath.Join(home, dir[1:])
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("find the directory: %w", err)
	}
	s.dir = dir
	inside := slices.ContainsFunc(had.Roots, func(root string) bool { return cli.Lies(dir, root) })
	if inside && dir == had.DefaultDir {
		return nil
	}
	if !inside {
		roots := []string{dir}
		if !slices.Equal(had.Roots, config.Default().Projects.Roots) { // keep roots that the owner has configured
			roots = append(slices.Clone(had.Roots), dir)
		}
		s.cfg.Projects.Roots = roots
		s.addChange("projects", "roots", roots, "The directories that agents may be sent to.")
	}
	s.cfg.Projects.DefaultDir = dir
	s.addChange("projects", "default_dir", dir, "Where they work until /cwd or /project says otherwise.")
	return nil
}

func (s *setup) makeDir() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make the directory that agents work in: %w", err)
	}
	return nil
}

// maxAnswers is how often the setup asks the same question if the answers are invalid.
const maxAnswers = 3

// askValid is like givenOrAsk, but asks again if check rejects the answer.
func (s *setup) askValid(ctx context.Context, given, question, preset string,
	check func(answer string) error) (string, error) {
	for try := 1; ; try++ {
		answer, err := s.givenOrAsk(ctx, given, question, preset)
		if err != nil {
			return "", err
		}
		if err = check(answer); err == nil || given != "" || try == maxAnswers {
			return answer, err
		}
		s.Say("%v.", err)
	}
}

// Agree asks a question until the owner answers yes or no. An empty answer means preset.
func Agree(ctx context.Context, on Console, question string, preset string) (bool, error) {
	for {
		answer, err := on.Ask(ctx, question+" yes or no", preset)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
		on.Say("Please answer yes or no.")
	}
}

// givenOrAsk returns the answer from the command line, or asks the owner if this answer is empty.
func (s *setup) givenOrAsk(ctx context.Context, given, question, preset string) (string, error) {
	if given != "" {
		return given, nil
	}
	answer, err := s.Ask(ctx, question, preset)
	return strings.TrimSpace(answer), err
}

func (s *setup) askSandbox(ctx context.Context) error {
	had := s.cfg.Sandbox.Mode
	mode, err := s.askValid(ctx, s.given.Sandbox, "Where agents run: off (on this machine) or docker (in containers)",
		had, func(mode string) error {
			if mode != orchestrator.SandboxOff && mode != orchestrator.SandboxDocker {
				return fmt.Errorf("the sandbox is %s or %s, not %q",
					orchestrator.SandboxOff, orchestrator.SandboxDocker, mode)
			}
			if mode == orchestrator.SandboxDocker && s.world.Engine(ctx, s.cfg) != nil {
				return errors.New("no container engine answers here: install Docker or Podman and start it, or " +
					"choose off; see docs/sandbox.md")
			}
			return nil
		})
	if err != nil {
		return err
	}
	if mode != had {
		s.cfg.Sandbox.Mode = mode
		s.addChange("sandbox", "mode", mode,
			`"docker" runs agents in containers, "off" on this machine; see docs/sandbox.md.`)
	}
	return nil
}

// askAgent shows which agents can be used, and asks for the default agent.
func (s *setup) askAgent(ctx context.Context) error {
	preset := s.cfg.Agents.Default
	if s.cfg.Sandbox.Mode == orchestrator.SandboxOff {
		found, err := s.world.Agents(ctx, s.cfg)
		if err != nil {
			return fmt.Errorf("look for agents: %w", err)
		}
		preset = s.defaultAgent(found)
	} else {
		s.Say("Agents run in containers. The check at the end shows which of them work there.")
	}
	choice, err := s.askValid(ctx, s.given.Model, "The agent for new chats; AGENT/MODEL chooses a model too",
		string(preset), func(choice string) error {
			if name, _, _ := strings.Cut(choice, "/"); !s.cfg.Agents.Enabled(name) {
				return fmt.Errorf("there is no agent %q", name)
			}
			return nil
		})
	if err != nil {
		return err
	}
	name, model, _ := strings.Cut(choice, "/")
	if cli.Agent(name) != s.cfg.Agents.Default {
		s.addChange("agents", "default", name, "The agent of conversations that have not chosen one by /model.")
	}
	if model != "" {
		s.addChange(s.cfg.Agents.Table(name), "model", model, "The model of conversations that have not chosen one.")
	}
	return nil
}

// offerAgents asks for each installed agent of the ACP catalogue whether to add it. An unattended setup adds none.
func (s *setup) offerAgents(ctx context.Context) error {
	if s.given.Unattended || s.cfg.Sandbox.Mode != orchestrator.SandboxOff {
		return nil
	}
	for _, e := range s.cfg.Agents.Addable(exec.LookPath) {
		agreed, err := Agree(ctx, s.Console, e.Name+" is installed here ("+e.Command+"). Use it too?", "yes")
		if err != nil {
			return err
		}
		if agreed {
			s.cfg.Agents, s.changes = s.cfg.Agents.With(e), append(s.changes, config.AgentChange(e))
		}
	}
	return nil
}

// defaultAgent shows the state of each agent, and returns the agent that the setup suggests as the default. It suggests
// the configured agent if that agent is usable, and otherwise the first usable agent. If no agent is usable,
// defaultAgent warns the owner and returns the configured agent.
func (s *setup) defaultAgent(found []cli.AgentState) (preset cli.Agent) {
	var first cli.Agent
	for _, a := range found {
		s.Say("  %s: %s", a.Agent, a)
		if !a.Usable() {
			continue
		}
		if first == "" {
			first = a.Agent
		}
		if a.Agent == s.cfg.Agents.Default {
			preset = a.Agent
		}
	}
	switch {
	case first == "":
		s.Say("No agent can be used yet. The lines above name the problems. Continue, and fix one of them before " +
			"you write to the bot.")
		return s.cfg.Agents.Default
	case preset == "":
		return first
	}
	return preset
}

// ParseOwner parses the ID of a Telegram user. It returns 0 for an empty text.
func ParseOwner(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, fmt.Errorf("%q is no id of a user: a number such as 123456789", text)
	}
	return id, nil
}
