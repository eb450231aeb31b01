package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// askWait is the time limit for starting Claude only to query its version or its models. Claude needs most of this time
// to load.
const askWait = 15 * time.Second

// Auth implements cli.Provider. It looks for a key in the environment and for a log-in on disk. If it finds neither, it
// asks the CLI.
func (p *Provider) Auth(ctx context.Context) cli.Auth {
	env := p.environment(cli.Request{})
	return turn.Account{
		Agent: agent, Env: env, Install: "Install Claude Code: npm install -g @anthropic-ai/claude-code, or set agents.claude.path",
		Fix: "Log in to Claude Code: run `claude` once on this machine and type /login, or set ANTHROPIC_API_KEY",
		Keys: []string{
			"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", tokenVar,
			"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY",
		},
		Else: func(ctx context.Context) string {
			if p.credentialFile(env) {
				return "credential file"
			}
			reply, err := p.initialize(ctx)
			if err != nil && !cli.Interrupted(ctx, err) {
				p.opts.Logger.Warn("claude does not tell how it is logged in", "err", err)
			}
			if err != nil {
				return ""
			}
			return reply.Account.method()
		},
	}.Auth(ctx, p.opts.ProviderOptions)
}

// tokenVar is the environment variable for a token that `claude setup-token` printed.
const tokenVar = "CLAUDE_CODE_OAUTH_TOKEN"

var _ cli.LoginProvider = (*Provider)(nil)

// Logins implements cli.LoginProvider.
func (*Provider) Logins() []cli.Login {
	return []cli.Login{
		{Kind: cli.LoginByToken, Command: "claude setup-token", Variable: tokenVar},
		{Kind: cli.LoginByCommand, Command: "claude auth login"},
		{Kind: cli.LoginByVariable, Variable: "ANTHROPIC_API_KEY"},
	}
}

// LogIn implements cli.LoginProvider. It always fails, because ductor itself stores the token of a log-in.
func (*Provider) LogIn(context.Context, string, func(cli.DeviceCode)) error {
	return errors.ErrUnsupported
}

// credentialFile reports whether the disk contains a valid log-in with a subscription. An expired access token is valid
// if there is a refresh token.
func (p *Provider) credentialFile(env []string) bool {
	raw, err := p.opts.ReadFile(filepath.Join(configDir(env, cli.Variable(env, "HOME")), loginFile))
	if err != nil {
		return false
	}
	var file struct {
		OAuth struct {
			Access    string `json:"accessToken"`
			Refresh   string `json:"refreshToken"`
			ExpiresAt int64  `json:"expiresAt"` // Unix time in milliseconds
		} `json:"claudeAiOauth"`
	}
	if json.Unmarshal(raw, &file) != nil {
		return false
	}
	current := file.OAuth.ExpiresAt == 0 || p.opts.Now().Before(time.UnixMilli(file.OAuth.ExpiresAt))
	return file.OAuth.Refresh != "" || file.OAuth.Access != "" && current
}

// initReply is Claude's reply to the first "initialize" request of a process.
type initReply struct {
	Models  []wireModel `json:"models"`
	Account account     `json:"account"`
}

type wireModel struct {
	Value       string   `json:"value"`
	Resolved    string   `json:"resolvedModel"`
	Name        string   `json:"displayName"`
	Description string   `json:"description"`
	Efforts     []string `json:"supportedEffortLevels"`
}

type account struct {
	Token    string `json:"tokenSource"`
	Key      string `json:"apiKeySource"`
	Provider string `json:"apiProvider"`
}

// method returns how the account is logged in, or "" if the account is not logged in.
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

// Models implements cli.Provider. It starts a process, queries its models and ends the process. This uses no tokens.
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
		Agent: agent, ID: cli.ModelID(m.Value), Resolved: cli.ModelID(m.Resolved), Name: m.Name,
		Description: oneLine(m.Description), Default: cli.ModelID(m.Value) == defaultModel,
	}
	for _, e := range m.Efforts {
		model.Efforts = append(model.Efforts, cli.Effort(e))
	}
	return model
}

// initialize starts a process, sends it an initialize request, ends the process and returns the reply. Errors are
// *cli.Failure.
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
		// The error does not matter: if the request is not sent, the turn times out.
		Begin: func() { _ = stream.Send(controlLine(initRequest, subtype("initialize"))) },
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
	// initGrace is the time for a process to end by itself after its reply to "initialize".
	initGrace = 200 * time.Millisecond
)

// initReply returns the reply to the "initialize" request, or nil if the line is something else.
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

// openRequests contains ductor's requests to a live process that Claude has not answered yet. Safe for concurrent use.
type openRequests struct {
	mu      sync.Mutex
	last    int
	waiting map[string]chan *controlReply
}

// openRequestID is the prefix of the IDs of open requests.
const openRequestID = "ask-"

// begin registers a request. It returns the request's ID and a channel for the answer. The caller must call end after
// it has received the answer, or when it stops waiting.
func (q *openRequests) begin() (id string, answer <-chan *controlReply, end func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	id = openRequestID + strconv.Itoa(q.last)
	if q.waiting == nil {
		q.waiting = map[string]chan *controlReply{}
	}
	c := make(chan *controlReply, 1)
	q.waiting[id] = c
	return id, c, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.waiting, id)
	}
}

// answer sends Claude's answer to the channel that begin returned. It returns false if r does not answer an open
// request.
func (q *openRequests) answer(r *controlReply) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, ok := q.waiting[r.RequestID]
	if ok {
		delete(q.waiting, r.RequestID)
		c <- r
	}
	return ok || strings.HasPrefix(r.RequestID, openRequestID) // also accept an answer that no caller waits for
}

// request sends a request to the live process and waits for the reply. It decodes the reply into answer, unless answer
// is nil.
func (s *live) request(ctx context.Context, request map[string]any, answer any) error {
	name := request["subtype"]
	s.mu.Lock()
	run, closed := s.run, s.phase == shut
	s.mu.Unlock()
	if run == nil || closed || !run.stream.Alive() {
		return fmt.Errorf("ask claude for %s: %w", name, errors.ErrUnsupported)
	}
	id, replies, end := run.asked.begin()
	defer end()
	if err := run.stream.Send(controlLine(id, request)); err != nil {
		return fmt.Errorf("ask claude for %s: %w", name, err)
	}
	select {
	case r := <-replies:
		if r.Subtype == "error" {
			return cli.Failf(cli.Refused, agent, "it does not take %s: %s", name, oneLine(r.Error))
		}
		if answer == nil {
			return nil
		}
		if err := json.Unmarshal(r.Response, answer); err != nil {
			return fmt.Errorf("read claude's answer to %s: %w", name, err)
		}
		return nil
	case <-run.stream.Process().Done():
		return fmt.Errorf("ask claude for %s: it ended", name)
	case <-ctx.Done():
		return fmt.Errorf("ask claude for %s: %w", name, context.Cause(ctx))
	}
}

// Fill implements cli.FillReporter.
func (s *live) Fill(ctx context.Context) (cli.Fill, error) {
	var answer struct {
		Parts []struct {
			Name   string `json:"name"`
			Tokens int64  `json:"tokens"`
		} `json:"categories"`
		Used  int64 `json:"totalTokens"`
		Limit int64 `json:"rawMaxTokens"`
	}
	if err := s.request(ctx, subtype("get_context_usage"), &answer); err != nil {
		return cli.Fill{}, err
	}
	f := cli.Fill{Used: answer.Used, Limit: answer.Limit}
	for _, p := range answer.Parts {
		if p.Tokens > 0 && p.Name != "Free space" && !strings.Contains(p.Name, "buffer") { // skip unused space
			f.Parts = append(f.Parts, cli.FillPart(p))
		}
	}
	return f, nil
}

// Commands implements cli.Commander. It returns Claude's commands and skills.
func (s *live) Commands(ctx context.Context) ([]cli.AgentCommand, error) {
	var answer struct {
		Commands []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			Arguments   string `json:"argumentHint"`
		} `json:"commands"`
	}
	if err := s.request(ctx, subtype("initialize"), &answer); err != nil {
		return nil, err
	}
	var list []cli.AgentCommand
	for _, c := range answer.Commands {
		list = append(list, cli.AgentCommand{Name: "/" + c.Name, Description: c.Description, Arguments: c.Arguments})
	}
	return list, nil
}

var (
	_ cli.FillReporter = (*live)(nil)
	_ cli.Commander    = (*live)(nil)
)
