package setup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/paircode"
)

// Given is what the owner said before being asked. What is empty is asked.
type Given struct {
	Token                            config.Secret
	Owner                            int64
	Project, Sandbox, Model, APIBase string
	Unattended                       bool // no one answers questions: every preset counts
}

// Console is where the owner reads and answers.
type Console interface {
	Say(format string, args ...any) // one line
	// Ask gives the answer to a question, or preset where the owner only presses Enter.
	Ask(ctx context.Context, question, preset string) (string, error)
	// Secret is Ask for what must not be shown.
	Secret(ctx context.Context, question string) (config.Secret, error)
}

// World is what a setup works with. All fields are required.
type World struct {
	Environment config.Environment
	Connect     func(config.Config) (API, error)
	Lock        func(config.Config) (release func(), err error) // fails where a ductor of this user serves the bot
	Agents      func(context.Context, config.Config) ([]cli.AgentState, error)
	Engine      func(context.Context, config.Config) error // fails if no container engine answers
}

// Run asks for what is missing, shows what changes in the file at path, and writes it when the owner agrees. Until then it
// changes nothing. The file keeps its comments and all other keys, and is for this user alone. ErrStopped where ctx ended before
// that.
func Run(ctx context.Context, path string, given Given, on Console, world World) error {
	cfg, text, err := config.Draft(path, world.Environment)
	if err != nil {
		return fmt.Errorf("read what is configured: %w", err)
	}
	s := &setup{Console: on, world: world, given: given, path: path, before: text, cfg: cfg}
	for _, step := range []func(context.Context) error{s.server, s.token, s.owner, s.project, s.sandbox, s.agent, s.write} {
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

// ErrStopped says that the owner ended a setup before it wrote anything.
var ErrStopped = errors.New("stopped; nothing was written")

// setup is the state of a Run.
type setup struct {
	Console
	world   World
	given   Given
	path    string
	before  []byte        // the file's text
	cfg     config.Config // with what was answered so far
	changes []config.Change
	api     API
	bot     string // its username
	dir     string // in which agents work; it is made when the owner agrees
}

func (s *setup) change(table, key string, value any, comment string) {
	s.changes = append(s.changes, config.Change{Table: table, Key: key, Value: value, Comment: comment})
}

func (s *setup) server(context.Context) error {
	if s.given.APIBase != "" && s.given.APIBase != s.cfg.Telegram.APIBase {
		if err := config.CheckAPIBase(s.given.APIBase); err != nil {
			return fmt.Errorf("the address of the Bot API %w, not %q", err, s.given.APIBase)
		}
		s.cfg.Telegram.APIBase = s.given.APIBase
		s.change("telegram", "api_base", s.given.APIBase, "Where the Bot API is.")
	}
	return nil
}

// mostCodes is how many codes are shown before the setup ends.
const mostCodes = 3

// owner is who is configured, or who sends a code to the bot.
func (s *setup) owner(ctx context.Context) error {
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
	users = append([]int64{owner}, slices.DeleteFunc(slices.Clone(users), func(id int64) bool { return id == owner })...)
	s.cfg.Telegram.AllowedUsers = users
	s.change("telegram", "allowed_users", users, "The users that ductor answers; the first is the owner.")
	return nil
}

// pair shows a code, and a new one where one was spent.
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
		who, err := Pair(ctx, s.api, code)
		switch {
		case who.ID != 0:
			return who, nil // an answer that did not arrive costs nothing
		case try < mostCodes && (errors.Is(err, ErrExpired) || errors.Is(err, ErrAttempts)):
			s.Say("No owner yet: %v. Here is a new one.", err)
		default:
			return Paired{}, fmt.Errorf("learn who the owner is: %w", err)
		}
	}
}

// project is where agents work.
func (s *setup) project(ctx context.Context) error {
	had := s.cfg.Projects
	dir, err := s.answer(ctx, s.given.Project, "The directory in which agents work", had.DefaultDir)
	if err != nil {
		return err
	}
	if home := s.world.Environment.Getenv("HOME"); dir == "~" || strings.HasPrefix(dir, "~/") {
		dir = filepath.Join(home, dir[1:])
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("find the directory: %w", err)
	}
	if s.dir = dir; dir == had.DefaultDir {
		return nil
	}
	inside := slices.ContainsFunc(had.Roots, func(root string) bool { return cli.Lies(dir, root) })
	if !inside {
		roots := []string{dir}
		if !slices.Equal(had.Roots, config.Default().Projects.Roots) { // those that the owner named
			roots = append(slices.Clone(had.Roots), dir)
		}
		s.cfg.Projects.Roots = roots
		s.change("projects", "roots", roots, "The directories that agents may be sent to.")
	}
	s.cfg.Projects.DefaultDir = dir
	s.change("projects", "default_dir", dir, "Where they work until /cwd or /project says otherwise.")
	return nil
}

// makeDir makes the directory in which agents work.
func (s *setup) makeDir() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make the directory in which agents work: %w", err)
	}
	return nil
}

// mostAnswers is how often a question is asked whose answer cannot be used.
const mostAnswers = 3

// choose is answer for a question whose answers can be wrong: the owner is asked again then.
func (s *setup) choose(ctx context.Context, given, question, preset string, check func(answer string) error) (string, error) {
	for try := 1; ; try++ {
		answer, err := s.answer(ctx, given, question, preset)
		if err != nil {
			return "", err
		}
		if err = check(answer); err == nil || given != "" || try == mostAnswers {
			return answer, err
		}
		s.Say("%v.", err)
	}
}

// Agree asks until the owner says yes or no. An empty answer is the preset.
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

// answer is what was given, or what the owner answers.
func (s *setup) answer(ctx context.Context, given, question, preset string) (string, error) {
	if given != "" {
		return given, nil
	}
	answer, err := s.Ask(ctx, question, preset)
	return strings.TrimSpace(answer), err
}

func (s *setup) sandbox(ctx context.Context) error {
	had := s.cfg.Sandbox.Mode
	mode, err := s.choose(ctx, s.given.Sandbox, "Where agents run: off (on this machine) or docker (in containers)", had, func(mode string) error {
		if mode != config.SandboxOff && mode != config.SandboxDocker {
			return fmt.Errorf("the sandbox is %s or %s, not %q", config.SandboxOff, config.SandboxDocker, mode)
		}
		if mode == config.SandboxDocker && s.world.Engine(ctx, s.cfg) != nil {
			return errors.New("no container engine answers here: install Docker or Podman and start it, or choose off; docs/sandbox.md says more")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if mode != had {
		s.cfg.Sandbox.Mode = mode
		s.change("sandbox", "mode", mode, `"docker" runs agents in containers, "off" on this machine; see docs/sandbox.md.`)
	}
	return nil
}

// agent finds the agents where they will run, and asks which one conversations begin with.
func (s *setup) agent(ctx context.Context) error {
	preset := s.cfg.Agents.Default
	if s.cfg.Sandbox.Mode == config.SandboxOff {
		found, err := s.world.Agents(ctx, s.cfg)
		if err != nil {
			return fmt.Errorf("look for agents: %w", err)
		}
		preset = s.preset(found)
	} else {
		s.Say("Agents run in containers; the check at the end says which of them can be used there.")
	}
	choice, err := s.choose(ctx, s.given.Model, "The agent of new conversations; AGENT/MODEL chooses a model too", preset, func(choice string) error {
		if name, _, _ := strings.Cut(choice, "/"); !s.cfg.Agents.Enabled(name) {
			return fmt.Errorf("there is no agent %q", name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	name, model, _ := strings.Cut(choice, "/")
	if name != s.cfg.Agents.Default {
		s.change("agents", "default", name, "The agent of conversations that have not chosen one by /model.")
	}
	if model != "" {
		s.change(s.cfg.Agents.Table(name), "model", model, "The model of conversations that have not chosen one.")
	}
	return nil
}

// preset says which agents can be used, and gives the configured one or the first of those.
func (s *setup) preset(found []cli.AgentState) string {
	first, preset := "", ""
	for _, a := range found {
		s.Say("  %s: %s", a.Agent, a)
		if !a.Usable() {
			continue
		}
		if first == "" {
			first = string(a.Agent)
		}
		if string(a.Agent) == s.cfg.Agents.Default {
			preset = string(a.Agent)
		}
	}
	switch {
	case first == "":
		s.Say("No agent can be used yet. The lines above say what each of them lacks; go on, and see to it before you write to the bot.")
		return s.cfg.Agents.Default
	case preset == "":
		return first
	}
	return preset
}

// ParseOwner reads the id of a user; 0 for an empty text.
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
