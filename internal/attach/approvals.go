package attach

import (
	"slices"
	"time"

	"ductor/cli"
	"ductor/internal/attach/wire"
	"ductor/orchestrator"
)

// approvalOf converts an approval to the protocol. If a user has decided the approval, approvalOf assumes that the
// decision was made in the chat. Hub.decide corrects this if the decision was made in a terminal.
func approvalOf(a orchestrator.Approval, now time.Time) wire.Approval {
	shown := wire.Approval{
		ID: string(a.ID), Turn: string(a.Turn), Agent: string(a.Agent), Dir: a.Dir, Sandbox: string(a.Sandbox),
		Same: a.Same(), Asked: a.Asked, Expires: a.Expires,
		Decision: wire.Decision{
			State: wire.ApprovalState(a.State), Ruled: a.Ruled, Reason: a.Reason, Answers: a.Answers,
			Decided: a.Decided, Chat: a.By != 0,
		},
	}
	secret := false
	for _, q := range a.Questions {
		secret = secret || q.Secret
		shown.Questions = append(shown.Questions, questionOf(q))
	}
	if secret {
		shown.Answers = nil
	}
	if a.Request != nil && sizeOf(*a.Request) > mostRequest {
		shown.Asks = &wire.Asks{
			Tool: a.Request.Tool, Title: cli.Shorten(a.Request.Title, leanTitle),
			Missing: "the rest, which is too long for a terminal",
		}
	} else if a.Request != nil {
		shown.Asks = asksOf(*a.Request, a.Links)
	}
	if a.WhyClosed(now) == nil {
		shown.Choices = offersOf(a)
	}
	return shown
}

func questionOf(q cli.Question) wire.Question {
	shown := wire.Question{Header: q.Header, Text: q.Text, Multi: q.Multi, Free: q.Free, Secret: q.Secret}
	for _, o := range q.Options {
		shown.Options = append(shown.Options, wire.Option(o))
	}
	return shown
}

func asksOf(req cli.ApprovalAsked, links []orchestrator.Link) *wire.Asks {
	asks := &wire.Asks{
		Tool: req.Tool, Title: req.Title, Detail: req.Detail, Reason: req.Reason, Missing: req.Missing,
		Input: slices.Clone(req.Input),
	}
	for _, c := range req.Changes {
		asks.Changes = append(asks.Changes, wire.Change{Path: c.Path, Kind: string(c.Kind), Diff: c.Diff})
	}
	for _, f := range req.Fields {
		asks.Fields = append(asks.Fields, wire.Field{
			Name: f.Name, Value: f.Value, Wider: f.Weight == cli.WiderField, Label: f.Weight == cli.LabelField,
		})
	}
	for _, l := range links {
		asks.Links = append(asks.Links, wire.Link(l))
	}
	return asks
}

// mostRequest is the size of the largest request that a user can allow in a terminal, because the terminal must show
// the whole request. If a request is larger, the terminal shows only the first leanTitle bytes of its title, and offers
// only Deny.
const (
	mostRequest = wire.MaxLine / 8
	leanTitle   = 1000
)

// offersOf returns the choices that an open approval offers in a terminal.
func offersOf(a orchestrator.Approval) []wire.Offer {
	long := a.Request != nil && sizeOf(*a.Request) > mostRequest
	var offers []wire.Offer
	for _, c := range a.Offers() {
		o := wire.Offer{Choice: wire.Choice(c)}
		switch {
		case long && c != orchestrator.Deny:
			continue
		case c == orchestrator.AllowSession:
			o.Rule = a.SessionRule
		case c == orchestrator.AllowPattern:
			o.Rule = a.Rule
		}
		offers = append(offers, o)
	}
	return offers
}

func sizeOf(req cli.ApprovalAsked) int {
	n := len(req.Title) + len(req.Detail) + len(req.Reason) + len(req.Input)
	for _, c := range req.Changes {
		n += len(c.Path) + len(c.Diff)
	}
	for _, f := range req.Fields {
		n += len(f.Name) + len(f.Value)
	}
	return n
}
