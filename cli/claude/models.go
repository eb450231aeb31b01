package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

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
	// The reply, the end of the process and the end of our patience all end the reading below.
	kill := context.AfterFunc(ctx, func() { _ = proc.Stop(context.WithoutCancel(ctx), 0) })
	defer kill()
	reply, err := askInitialize(proc)
	_ = proc.Stop(context.WithoutCancel(ctx), 200*time.Millisecond)
	if ctx.Err() != nil {
		return initReply{}, &cli.Failure{Kind: cli.TimedOut, Agent: agent, Cause: context.Cause(ctx)}
	}
	if err != nil {
		words := strings.TrimSpace(proc.StderrTail())
		return initReply{}, &cli.Failure{
			Kind: cli.BadOutput, Agent: agent, Reason: oneLine(words), Detail: words,
			Cause: fmt.Errorf("ask claude for its models: %w", err),
		}
	}
	return reply, nil
}

const initRequest = "init"

var errNoReply = errors.New("no reply")

func askInitialize(proc cli.Process) (initReply, error) {
	if _, err := proc.Stdin().Write(controlLine(initRequest, subtype("initialize"))); err != nil {
		return initReply{}, fmt.Errorf("write: %w", err)
	}
	var reply *initReply
	err := turn.ReadLines(proc.Stdout(), 0, func(raw []byte) {
		if l, err := decodeLine(raw); err == nil && reply == nil {
			reply = l.initReply()
		}
		if reply != nil {
			_ = proc.Stdin().Close() // it ends at the end of its input, and the reading with it
		}
	}, nil)
	switch {
	case reply != nil:
		return *reply, nil
	case err != nil && !errors.Is(err, io.EOF):
		return initReply{}, fmt.Errorf("read: %w", err)
	}
	return initReply{}, errNoReply
}

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
