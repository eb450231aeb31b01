package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/rpc"
)

// A peer that violates the protocol costs at most the turn in which it does, and ordered text still arrives.
func TestAPeerThatBreaksTheRules(t *testing.T) {
	for name, say := range map[string]func(p *peer, prompt rpc.Message){
		"unknown methods": func(p *peer, m rpc.Message) {
			p.say(`{"id":77,"method":"session/make_coffee","params":{"sessionId":"s1"}}`)
			if answer := p.hear(""); answer.Error == nil || answer.Error.Code != rpc.CodeNoMethod {
				p.t.Errorf("answered %+v", answer)
			}
			p.say(`{"method":"session/has_coffee","params":{}}`)
		},
		"answers to nothing": func(p *peer, m rpc.Message) {
			p.say(`{"id":"nobody","result":{}}`)
			p.say(`{"id":null,"error":{"code":1}}`)
		},
		"updates of no session":   func(p *peer, m rpc.Message) { p.text("s99", "not for us") },
		"lines that are no lines": func(p *peer, m rpc.Message) { p.say("Ripgrep is not available."); p.say(`{"id":`) },
		"updates without sense": func(p *peer, m rpc.Message) {
			p.say(`{"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call"}}}`)
			p.say(`{"method":"session/update","params":{"sessionId":"s1","update":17}}`)
			p.say(`{"method":"session/update"}`)
		},
		"a question that cannot be read": func(p *peer, m rpc.Message) {
			p.say(`{"id":78,"method":"session/request_permission","params":[]}`)
			if answer := p.hear(""); answer.Error == nil || answer.Error.Code != rpc.CodeBadParams {
				p.t.Errorf("answered %+v", answer)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			provider, p := play(t, nil)
			req := wish(t, "hi")
			s := open(t, provider, req)
			turn := begin(t, s, req)
			prompt := p.hear(methodPrompt)
			say(p, prompt)
			p.text("s1", "all the same")
			p.endTurn(prompt)
			p.endTurn(prompt) // a second time
			if r := until[cli.Result](turn); r.Err != nil || r.Text != "all the same" {
				t.Errorf("%q, %+v", r.Text, r.Err)
			}
		})
	}
}

func TestHowATurnEnds(t *testing.T) {
	for answer, want := range map[string]cli.FailureKind{
		`"result":{"stopReason":"end_turn"}`:                          "",
		`"result":{"stopReason":"max_tokens"}`:                        cli.AnswerCut,
		`"result":{"stopReason":"max_turn_requests"}`:                 cli.LimitOfTurn,
		`"result":{"stopReason":"refusal"}`:                           cli.ModelRefused,
		`"result":{"stopReason":"cancelled"}`:                         cli.UnknownFailure,
		`"result":{"stopReason":"bored"}`:                             cli.UnknownFailure,
		`"result":{}`:                                                 cli.BadOutput,
		`"result":[]`:                                                 cli.BadOutput,
		`"error":{"code":-32000,"message":"Authentication required"}`: cli.NotLoggedIn,
		`"error":{"code":429,"message":"slow down"}`:                  cli.LimitReached,
		`"error":{"code":-32603,"message":"Internal error","data":{"details":"the model is overloaded"}}`: cli.Overloaded,
		`"error":{"code":-32603,"message":"Internal error","data":{"details":"fetch failed"}}`:            cli.NetworkDown,
	} {
		t.Run(answer, func(t *testing.T) {
			provider, p := play(t, nil)
			req := wish(t, "hi")
			s := open(t, provider, req)
			turn := begin(t, s, req)
			p.say(`{"id":%s,%s}`, p.hear(methodPrompt).ID, answer)
			r := until[cli.Result](turn)
			if got := kindOfResult(r); got != want {
				t.Errorf("kind %q, want %q: %v", got, want, r.Err)
			}
		})
	}
}

// An agent that is slow to start is not reported as logged out.
func TestASlowStartIsNoMissingLogIn(t *testing.T) {
	provider, _ := play(t, nil)
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if a := provider.Auth(ctx); a.State != cli.Installed || a.Fix != "" || a.Problem == nil || a.Problem.Kind != cli.TimedOut {
		t.Errorf("it is %+v, %v", a, a.Problem)
	}
}

func kindOfResult(r cli.Result) cli.FailureKind {
	if r.Err == nil {
		return ""
	}
	return r.Err.Kind
}

// A user's answer selects the option that applies once, and never a permanent one.
func TestADecisionReachesTheAgent(t *testing.T) {
	for allow, option := range map[bool]string{true: "yes", false: "no"} {
		provider, p := play(t, nil)
		req := wish(t, "hi")
		s := open(t, provider, req)
		turn := begin(t, s, req)
		prompt := p.hear(methodPrompt)
		p.text("s1", "Before.")
		p.ask(5, "s1", "rm", "execute")
		asked := until[cli.ApprovalAsked](turn)
		if asked.Title != "do rm" || asked.Tool != "execute" || !asked.Deaf {
			t.Errorf("asked %+v", asked)
		}
		if err := s.Decide(t.Context(), "ask-6", cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("a decision without a question: %v", err)
		}
		if err := s.Decide(t.Context(), asked.ID, cli.Decision{Allow: allow}); err != nil {
			t.Fatal(err)
		}
		var chosen askResult
		if answer := p.hear(""); json.Unmarshal(answer.Result, &chosen) != nil || chosen.Outcome.OptionID != option || string(answer.ID) != "5" {
			t.Errorf("answered %s to %s", answer.Result, answer.ID)
		}
		if err := s.Decide(t.Context(), asked.ID, cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("a second decision: %v", err)
		}
		p.text("s1", "After.")
		p.endTurn(prompt)
		r := until[cli.Result](turn)
		if r.Err != nil || len(r.Denials) != map[bool]int{true: 0, false: 1}[allow] || r.Text != "Before.\n\nAfter." {
			t.Errorf("allow %v: %q, denials %+v, %v", allow, r.Text, r.Denials, r.Err)
		}
		if err := s.Decide(t.Context(), asked.ID, cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("a decision after the turn: %v", err)
		}
	}
}

// An agent that cancels its turn because the user denied a request has not failed. One that cancels it on its own has.
func TestAnAgentThatCancelsItsTurn(t *testing.T) {
	for _, denied := range []bool{true, false} {
		provider, p := play(t, nil)
		req := wish(t, "hi")
		s := open(t, provider, req)
		turn := begin(t, s, req)
		prompt := p.hear(methodPrompt)
		if denied {
			p.ask(5, "s1", "rm", "execute")
			if err := s.Decide(t.Context(), until[cli.ApprovalAsked](turn).ID, cli.Decision{}); err != nil {
				t.Fatal(err)
			}
			p.hear("")
		}
		p.say(`{"id":%s,"result":{"stopReason":"cancelled"}}`, prompt.ID)
		if r := until[cli.Result](turn); (r.Err == nil) != denied {
			t.Errorf("denied %v: %v", denied, r.Err)
		}
	}
}

// A request that no user can answer is denied, and the turn reports that.
func TestUnattendedNothingIsAllowed(t *testing.T) {
	provider, p := play(t, nil)
	req := wish(t, "hi")
	req.Attended = false
	s := open(t, provider, req)
	turn := begin(t, s, req)
	prompt := p.hear(methodPrompt)
	p.ask(5, "s1", "rm", "execute")
	if answer := p.hear(""); !strings.Contains(string(answer.Result), `"no"`) {
		t.Errorf("answered %s", answer.Result)
	}
	p.endTurn(prompt)
	if r := until[cli.Result](turn); len(r.Denials) != 1 || r.Denials[0].Reason == "" {
		t.Errorf("denials %+v", r.Denials)
	}
}

// An abort answers open requests, notifies the agent, and is over when the agent reports the end.
func TestAbortWithAQuestionOpen(t *testing.T) {
	provider, p := play(t, nil)
	req := wish(t, "hi")
	s := open(t, provider, req)
	turn := begin(t, s, req)
	prompt := p.hear(methodPrompt)
	p.ask(5, "s1", "rm", "execute")
	until[cli.ApprovalAsked](turn)
	turn.cancel(cli.ErrAborted)
	p.hear(methodCancel)
	if answer := p.hear(""); !strings.Contains(string(answer.Result), "cancelled") {
		t.Errorf("answered %s", answer.Result)
	}
	p.say(`{"id":%s,"result":{"stopReason":"cancelled"}}`, prompt.ID)
	if r := until[cli.Result](turn); !r.Aborted || r.Err != nil {
		t.Errorf("%+v", r)
	}
}

func TestAnAgentTakesItsQuestionBack(t *testing.T) {
	provider, p := play(t, nil)
	req := wish(t, "hi")
	s := open(t, provider, req)
	turn := begin(t, s, req)
	prompt := p.hear(methodPrompt)
	p.ask(5, "s1", "rm", "execute")
	asked := until[cli.ApprovalAsked](turn)
	p.say(`{"method":"$/cancel_request","params":{"requestId":5}}`)
	if gone := until[cli.ApprovalWithdrawn](turn); gone.ID != asked.ID {
		t.Errorf("withdrawn %q, asked %q", gone.ID, asked.ID)
	}
	if err := s.Decide(t.Context(), asked.ID, cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
		t.Errorf("decided: %v", err)
	}
	p.endTurn(prompt)
	until[cli.Result](turn)
}

// Two conversations of one process do not affect each other: neither by their text, nor by their questions, nor by an
// abort.
func TestTwoConversationsShareAProcess(t *testing.T) {
	provider, p := play(t, nil)
	a := wish(t, "a")
	b := a
	a.Turn, a.Conversation, b.Turn, b.Conversation = "ta", "ca", "tb", "cb"
	first, second := open(t, provider, a), open(t, provider, b)
	if p.started != 1 {
		t.Fatalf("%d processes were started", p.started)
	}
	one := begin(t, first, a)
	promptA := p.hear(methodPrompt)
	two := begin(t, second, b)
	promptB := p.hear(methodPrompt)
	p.ask(5, "s1", "rm", "execute")
	asked := until[cli.ApprovalAsked](one)
	if err := second.Decide(t.Context(), asked.ID, cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
		t.Errorf("the other conversation decided: %v", err)
	}
	p.text("s2", "two")
	one.cancel(cli.ErrAborted)
	p.hear(methodCancel)
	p.hear("")
	p.say(`{"id":%s,"result":{"stopReason":"cancelled"}}`, promptA.ID)
	if r := until[cli.Result](one); !r.Aborted || r.Text != "" {
		t.Errorf("the first: %+v", r)
	}
	clitest.Close(t, first)
	p.text("s2", " and on")
	p.endTurn(promptB)
	if r := until[cli.Result](two); r.Err != nil || r.Text != "two and on" {
		t.Errorf("the second: %q, %+v", r.Text, r.Err)
	}
	if second.Info().Alive {
		t.Error("a process in which something may still run takes further turns")
	}
}

// An agent that does not end its turn stays with the other conversation that it serves.
func TestADeafTurnIsLeftBehind(t *testing.T) {
	provider, p := play(t, func(o *Options) { o.Grace = 50e6 })
	a := wish(t, "a")
	b := a
	a.Turn, b.Turn = "ta", "tb"
	first, second := open(t, provider, a), open(t, provider, b)
	one := begin(t, first, a)
	p.hear(methodPrompt)
	two := begin(t, second, b)
	promptB := p.hear(methodPrompt)
	one.cancel(cli.ErrAborted)
	if r := until[cli.Result](one); !r.Aborted {
		t.Errorf("the first: %+v", r)
	}
	p.text("s1", "too late")
	p.hear(methodCancel)
	p.endTurn(promptB)
	if r := until[cli.Result](two); r.Err != nil {
		t.Errorf("the second: %+v", r.Err)
	}
}

// A conversation that starts while a hanging process is being stopped does not use that process.
func TestNoSessionJoinsAProcessThatIsBeingEnded(t *testing.T) {
	provider, p := play(t, func(o *Options) { o.Grace = 50 * time.Millisecond })
	req := wish(t, "hello")
	s, err := provider.Open(t.Context(), cli.Live, req)
	if err != nil {
		t.Fatal(err)
	}
	turn := begin(t, s, req)
	p.hear(methodPrompt)
	var other cli.Session
	p.dying = func() {
		p.dying = nil
		if other, err = provider.Open(t.Context(), cli.Live, req); err != nil {
			t.Error(err)
		}
	}
	turn.cancel(cli.ErrAborted)
	if r := until[cli.Result](turn); !r.Aborted {
		t.Errorf("%+v", r)
	}
	if other == nil || !other.Info().Alive || p.started != 2 {
		t.Errorf("%+v was opened in one of %d processes", other, p.started)
	}
	clitest.Close(t, s)
	clitest.Close(t, other)
}

func TestADeadProcessIsSeenByAll(t *testing.T) {
	provider, p := play(t, nil)
	a := wish(t, "a")
	s := open(t, provider, a)
	turn := begin(t, s, a)
	p.hear(methodPrompt)
	p.ask(5, "s1", "rm", "execute")
	until[cli.ApprovalAsked](turn)
	_ = s.Agent().Host().Program().Stop(t.Context(), 0)
	r := until[cli.Result](turn)
	if kindOfResult(r) != cli.Crashed || r.Err.Code != 3 || !strings.Contains(r.Err.Error(), "last words") {
		t.Errorf("%+v", r.Err)
	}
	if s.Info().Alive || s.Fits(a) && s.Info().Alive {
		t.Error("the session is alive")
	}
}

func TestPromptsThatAreNone(t *testing.T) {
	provider, _ := play(t, nil)
	for prompt, want := range map[string]string{"": "empty", " \n": "empty", "a\xffb": "no text"} {
		req := wish(t, prompt)
		s := open(t, provider, req)
		r, _ := clitest.Play(t.Context(), s, req)
		if kindOfResult(r) != cli.Refused || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%q: %+v", prompt, r.Err)
		}
	}
}

// An agent that offers no models is used with its own choice.
func TestAnAgentWithoutModelsCanBeChosen(t *testing.T) {
	provider, _ := play(t, nil)
	models, err := provider.Models(t.Context())
	if err != nil || len(models) != 1 || models[0].ID != "" || models[0].Name == "" || !models[0].Default {
		t.Errorf("models %+v, %v", models, err)
	}
}

// Text after the reply that ends a turn is not lost: the turn ends at once, and the text is shown once the agent is
// quiet. An agent that is known to do so gets its next prompt only then.
func TestTextAfterTheEndOfATurn(t *testing.T) {
	late := make(chan string, 2)
	provider, p := play(t, func(o *Options) {
		o.Background = func(_ cli.Conversation, r cli.BackgroundResult) { late <- string(r.Of) + ": " + r.Text }
	})
	req := wish(t, "hi")
	s := open(t, provider, req)
	for i, answer := range []string{"first", "second", "third"} {
		turn := begin(t, s, req)
		prompt := p.hear(methodPrompt)
		if i == 2 {
			select {
			case text := <-late:
				if text != "Tfirst: behind second" {
					t.Errorf("late text is %q", text)
				}
			default:
				t.Error("the next prompt was sent before the text of the last turn was shown")
			}
		}
		p.text("s1", answer)
		p.endTurn(prompt)
		if r := until[cli.Result](turn); r.Err != nil || r.Text != answer {
			t.Errorf("%q, %+v", r.Text, r.Err)
		}
		p.text("s1", "behind "+answer)
		if i == 0 {
			if text := <-late; text != t.Name()+": behind first" {
				t.Errorf("late text is %q", text)
			}
		}
		req.Turn, req.Resume = cli.TurnID("T"+answer), "s1"
	}
}

// A denial has the last text of the tool's line.
func TestADenialHasTheWordsOfItsLine(t *testing.T) {
	provider, p := play(t, nil)
	req := wish(t, "hi")
	req.Attended = false
	s := open(t, provider, req)
	turn := begin(t, s, req)
	prompt := p.hear(methodPrompt)
	p.say(`{"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"one thing","kind":"other","status":"pending","rawInput":{"a":1}}}}`)
	p.ask(5, "s1", "t", "other") // titled "do t"
	p.hear("")
	p.endTurn(prompt)
	first, last := until[cli.ToolStarted](turn), until[cli.ToolChanged](turn)
	r := until[cli.Result](turn)
	if first.Title != "one thing" || last.Title != "do t" || len(r.Denials) != 1 || r.Denials[0].Title != last.Title {
		t.Errorf("the line says %q, then %q, and denied is %+v", first.Title, last.Title, r.Denials)
	}
}
