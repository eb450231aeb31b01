package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ductor/internal/sim/telegram"
)

const toolCommand = "sleep 600"

// aborts measures /abort while a tool runs, in many new chats one after another. It returns the times until the agent
// and the tool are dead, and until the chat shows the reply.
func aborts(ctx context.Context, s *setup) ([]float64, error) {
	return s.abortAll(ctx, s.sizes.fresh, `[[text %q]] [[tool cmd="`+toolCommand+`"]]`, s.awaitTool)
}

// abortsOfText measures /abort while an answer grows. The edits of the growing answer have used up the chat's rate
// limit.
func abortsOfText(ctx context.Context, s *setup) ([]float64, error) {
	grow := func(ctx context.Context, _ int) ([]int, error) { return nil, pause(ctx, s.sizes.refill) }
	return s.abortAll(ctx, s.sizes.aborts, `[[text %q]] [[text n=20000 size=20 delay=25ms]]`, grow)
}

// abortAll sends a prompt in each of n chats, and aborts the prompt's turn. Before it aborts a turn, it calls ready
// with the agent's PID. ready waits until the turn should be aborted, and returns the PIDs of the agent's tools.
func (s *setup) abortAll(ctx context.Context, n int, prompt string,
	ready func(context.Context, int) ([]int, error)) ([]float64, error) {
	var dead, replied samples
	var word words
	p := pacer{every: s.sizes.pace}
	for i := range n {
		if err := p.wait(ctx); err != nil {
			return nil, err
		}
		agent, err := s.begin(ctx, s.chat(i+1), word.next(), prompt)
		if err != nil {
			return nil, err
		}
		tools, err := ready(ctx, agent)
		if err != nil {
			return nil, err
		}
		d, r, err := s.abort(ctx, s.chat(i+1), append(tools, agent))
		if err != nil {
			return nil, err
		}
		dead, replied = append(dead, d), append(replied, r)
	}
	return []float64{dead.median(), replied.median(), replied.max()}, nil
}

// begin sends a prompt and waits until the chat shows the first text of the answer. It returns the agent's process.
func (s *setup) begin(ctx context.Context, chat *telegram.Chat, word, prompt string) (agent int, err error) {
	first := s.expect("the first text", chat, shows(word))
	chat.Person().Send(chat, fmt.Sprintf(prompt, word))
	if _, err := s.await(ctx, first); err != nil {
		return 0, err
	}
	wrote, err := s.stamps(wroteText)
	if err != nil || len(wrote) == 0 {
		return 0, errors.Join(err, errors.New("no agent wrote text"))
	}
	return wrote[len(wrote)-1].pid, nil
}

// abort sends /abort. It returns the times until the processes are dead and until the chat shows the reply.
func (s *setup) abort(ctx context.Context, chat *telegram.Chat, pids []int) (dead, replied time.Duration, err error) {
	watched, err := exitsOf(pids...)
	if err != nil {
		return 0, 0, err
	}
	defer watched.close()
	reply := s.expect("the reply to /abort", chat, func(c telegram.Call) bool {
		return c.Method == "sendMessage" && strings.HasPrefix(c.Params["text"], "Stopp")
	})
	sent := time.Now()
	chat.Person().Send(chat, "/abort")
	died, err := watched.await(ctx)
	if err != nil {
		return 0, 0, s.explain(err)
	}
	call, err := s.await(ctx, reply)
	return died.Sub(sent), call.Done.Sub(sent), err
}

// awaitTool waits until an agent runs a tool.
func (s *setup) awaitTool(ctx context.Context, agent int) ([]int, error) {
	for {
		tools, err := childrenOf(agent, toolCommand)
		if err != nil || len(tools) > 0 {
			return tools, err
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return nil, s.explain(fmt.Errorf("wait for the tool: %w", err))
		}
	}
}

const allowButton = "✅ Allow once"

// approvals measures requests for permission in many new chats, one after another. It returns the times until the chat
// shows the request, and from the press of a button until the agent has read the decision.
func approvals(ctx context.Context, s *setup) ([]float64, error) {
	var shown, pressed []time.Time
	var word words
	p := pacer{every: s.sizes.pace}
	for i := range s.sizes.fresh {
		if err := p.wait(ctx); err != nil {
			return nil, err
		}
		show, press, err := s.approve(ctx, s.chat(i+1), word.next())
		if err != nil {
			return nil, err
		}
		shown, pressed = append(shown, show), append(pressed, press)
	}
	asked, err := s.stamps(wroteAsk)
	if err != nil {
		return nil, err
	}
	answered, err := s.stamps(readAnswer)
	if err != nil {
		return nil, err
	}
	if len(asked) != len(shown) || len(answered) != len(pressed) {
		return nil, fmt.Errorf("the agents asked %d times and read %d answers in %d turns", len(asked), len(answered),
			len(shown))
	}
	var there, back samples
	for i := range shown {
		there = append(there, shown[i].Sub(asked[i].at))
		back = append(back, answered[i].at.Sub(pressed[i]))
	}
	return []float64{there.median(), back.median()}, nil
}

// approve makes an agent ask for permission, presses the button that allows the request, and waits for the end of the
// turn.
func (s *setup) approve(ctx context.Context, chat *telegram.Chat, word string) (shown, pressed time.Time, err error) {
	approval := s.expect("the approval", chat, func(c telegram.Call) bool {
		return c.Method == "sendMessage" && strings.Contains(c.Params["reply_markup"], allowButton)
	})
	end := s.expect("the end of the answer", chat, s.ends(word))
	chat.Person().Send(chat, fmt.Sprintf(`[[ask cmd="true"]] [[text %q]]`, word))
	call, err := s.await(ctx, approval)
	if err != nil {
		return shown, pressed, err
	}
	card, ok := chat.View().Message(call.Message)
	if !ok {
		return shown, pressed, errors.New("the chat does not show the approval")
	}
	pressed = time.Now()
	if _, err := chat.Person().Tap(card, allowButton); err != nil {
		return shown, pressed, err
	}
	_, err = s.await(ctx, end)
	return call.Done, pressed, err
}
