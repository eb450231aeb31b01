package claude

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// askWait bounds what is asked of the CLI outside of turns: its version, its models. It starts cold.
const askWait = 15 * time.Second

// Auth looks whether Claude can be used: a key in the environment, a log-in on disk, else the CLI's own
// word. It spends no token.
func (p *Provider) Auth(ctx context.Context) cli.Auth {
	path, err := p.opts.Launcher.LookPath(p.opts.Path)
	if err != nil {
		return cli.Auth{State: cli.NotFound, Fix: "Install Claude Code: npm install -g @anthropic-ai/claude-code"}
	}
	a := cli.Auth{State: cli.Installed, Path: path, Version: p.version(ctx)}
	if a.Method = p.loginMethod(ctx); a.Method != "" {
		a.State = cli.Authenticated
		return a
	}
	a.Fix = "Log in to Claude Code: run `claude` once on this machine and type /login, or set ANTHROPIC_API_KEY"
	return a
}

var versionText = regexp.MustCompile(`\d+\.\d+\.\d+\S*`)

// version is empty where the CLI does not say.
func (p *Provider) version(ctx context.Context) string {
	out, err := turn.Output(ctx, p.opts.Launcher, cli.Command{
		Path: p.opts.Path, Args: []string{"--version"}, Env: p.environment(cli.Request{}),
	}, askWait)
	if err != nil {
		p.opts.Logger.Warn("claude does not tell its version", "err", err)
		return ""
	}
	return versionText.FindString(out)
}

// loginMethod says how Claude is logged in; empty for not at all.
func (p *Provider) loginMethod(ctx context.Context) string {
	env := p.environment(cli.Request{})
	for _, name := range []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
		"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY",
	} {
		if cli.Variable(env, name) != "" {
			return name
		}
	}
	if p.credentialFile(env) {
		return "credential file"
	}
	reply, err := p.initialize(ctx)
	if err != nil {
		p.opts.Logger.Warn("claude does not tell how it is logged in", "err", err)
		return ""
	}
	return reply.Account.method()
}

// credentialFile says whether a log-in with a subscription lies on disk. An access token that is over is
// good as long as there is a refresh token.
func (p *Provider) credentialFile(env []string) bool {
	dir := cli.Variable(env, "CLAUDE_CONFIG_DIR")
	if dir == "" {
		dir = filepath.Join(cli.Variable(env, "HOME"), ".claude")
	}
	raw, err := p.opts.ReadFile(filepath.Join(dir, ".credentials.json"))
	if err != nil {
		return false
	}
	var file struct {
		OAuth struct {
			Access    string `json:"accessToken"`
			Refresh   string `json:"refreshToken"`
			ExpiresAt int64  `json:"expiresAt"` // milliseconds
		} `json:"claudeAiOauth"`
	}
	if json.Unmarshal(raw, &file) != nil {
		return false
	}
	current := file.OAuth.ExpiresAt == 0 || p.opts.Now().Before(time.UnixMilli(file.OAuth.ExpiresAt))
	return file.OAuth.Refresh != "" || file.OAuth.Access != "" && current
}

// initReply is what Claude tells of itself before the first turn.
type initReply struct {
	Models  []wireModel `json:"models"`
	Account account     `json:"account"`
}

type wireModel struct {
	Value       string   `json:"value"`
	Name        string   `json:"displayName"`
	Description string   `json:"description"`
	Efforts     []string `json:"supportedEffortLevels"`
}

type account struct {
	Token    string `json:"tokenSource"`
	Key      string `json:"apiKeySource"`
	Provider string `json:"apiProvider"`
}

// method names how the account is logged in; empty for not at all.
func (a account) method() string {
	switch {
	case a.Key != "" && a.Key != "none":
		return a.Key
	case a.Token != "" && a.Token != "none":
		return a.Token
	case a.Provider != "" && a.Provider != "firstParty":
		return a.Provider
	}
	return ""
}

// Models lists what Claude offers to this account. It asks a process of its own, which is gone when
// Models returns; no token is spent.
func (p *Provider) Models(ctx context.Context) ([]cli.Model, error) {
	reply, err := p.initialize(ctx)
	if err != nil {
		return nil, err
	}
	if len(reply.Models) == 0 {
		return nil, cli.Failf(cli.BadOutput, agent, "it lists no models")
	}
	models := make([]cli.Model, 0, len(reply.Models))
	for _, m := range reply.Models {
		models = append(models, m.model())
	}
	return models, nil
}

func (m wireModel) model() cli.Model {
	model := cli.Model{
		Agent: agent, ID: cli.ModelID(m.Value), Name: m.Name, Description: oneLine(m.Description),
		Default: cli.ModelID(m.Value) == defaultModel,
	}
	for _, e := range m.Efforts {
		model.Efforts = append(model.Efforts, cli.Effort(e))
	}
	return model
}

// initialize starts a process for the sake of its first reply. Errors are *cli.Failure.
func (p *Provider) initialize(ctx context.Context) (initReply, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	proc, err := p.launch(ctx, formatLive, "", cli.Request{})
	if err != nil {
		return initReply{}, err
	}
	stream := turn.NewStream(proc, turn.StreamOptions{Agent: agent, Limits: turn.Limits{Stall: askWait, Grace: initGrace}})
	var reply *initReply
	var d decoder
	end := stream.Turn(ctx, turn.Loop[[]byte]{
		Begin: func() { _ = stream.Send(controlLine(initRequest, subtype("initialize"))) }, // else the process ends
		Handle: func(raw []byte) bool {
			if l, err := d.decode(raw); err == nil {
				reply = l.initReply()
			}
			return reply != nil
		},
	})
	closeErr := stream.Close(context.WithoutCancel(ctx))
	switch {
	case end == turn.EndTurn:
		return *reply, nil
	case ctx.Err() != nil:
		return initReply{}, &cli.Failure{Kind: cli.TimedOut, Agent: agent, Cause: errors.Join(context.Cause(ctx), closeErr)}
	}
	words := strings.TrimSpace(proc.StderrTail())
	return initReply{}, &cli.Failure{
		Kind: cli.BadOutput, Agent: agent, Reason: oneLine(words), Detail: words,
		Cause: errors.Join(errors.New("claude does not list its models"), closeErr),
	}
}

const (
	initRequest = "init"
	// initGrace is how long a process that was asked may take to end.
	initGrace = 200 * time.Millisecond
)

// initReply is the reply to initialize in this line; nil for any other line.
func (l *line) initReply() *initReply {
	if l.Type != "control_response" || l.Response == nil || l.Response.RequestID != initRequest {
		return nil
	}
	var reply initReply
	if tolerant(json.Unmarshal(l.Response.Response, &reply)) != nil {
		return nil
	}
	return &reply
}
