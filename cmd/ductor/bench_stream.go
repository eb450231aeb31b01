package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	words "ductor/internal/sim/script"
	"ductor/internal/sim/telegram"
)

// The answer of the benchmarks about streaming: 200 deltas of 20 characters over 5 seconds.
const (
	streamDeltas = 200
	streamSize   = 20
	streamPrompt = `[[text n=200 size=20 delay=25ms]]`
)

// streamFigures are about one answer that grows, with ductor's default configuration.
func streamFigures(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.newSite(siteOptions{name: "stream", stamps: true})
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.startWarm(ctx); err != nil {
		return nil, err
	}
	chat := s.private(1)
	chat.Person().Send(chat, streamPrompt)
	if err := s.awaitAnswers(ctx, chat, 1); err != nil {
		return nil, err
	}
	// A call is noted a moment after it is seen.
	done := func(c telegram.Call) bool { return whole(c.Params["text"]) }
	if _, err := s.srv.AwaitCalls(ctx, 1, telegram.InChat(chat.ID()), done); err != nil {
		return nil, err
	}
	written, err := s.written(0)
	if err != nil {
		return nil, err
	}
	calls := s.srv.Calls(telegram.InChat(chat.ID()), telegram.Writes)
	deltas := words.Generated(streamDeltas, streamSize)
	lag := lags(deltas, written, calls)
	if len(lag) != streamDeltas {
		return nil, fmt.Errorf("%d of %d deltas were shown", len(lag), streamDeltas)
	}
	deletes := len(s.srv.Calls(telegram.InChat(chat.ID()), telegram.Methods("deleteMessage", "deleteMessages")))
	return []figure{
		lag.within("200 deltas over 5 s: lag of a delta", 500*time.Millisecond),
		{
			what: "the same: calls to the API", measured: counted(calls), target: "<= 8", met: len(calls) <= 8,
		},
		{
			what: "the same: messages deleted", measured: fmt.Sprint(deletes), target: "0", met: deletes == 0, law: true,
		},
	}, nil
}

// counted says how many calls of which kind there were.
func counted(calls []telegram.Call) string {
	kinds := map[string]int{}
	for _, c := range calls {
		kinds[c.Method]++
	}
	text := fmt.Sprint(len(calls))
	for _, k := range []struct{ method, short string }{
		{"sendMessage", "send"}, {"editMessageText", "edit"}, {"sendChatAction", "typing"}, {"setMessageReaction", "reaction"},
	} {
		if n := kinds[k.method]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, k.short)
		}
	}
	return text
}

const crowdSize = 20

// crowdFigures are about what twenty such answers at once cost.
func crowdFigures(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.newSite(siteOptions{name: "crowd", people: crowdSize})
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.startWarm(ctx); err != nil {
		return nil, err
	}
	before, err := s.cpu()
	if err != nil {
		return nil, err
	}
	for i := range crowdSize {
		chat := s.private(i + 1)
		chat.Person().Send(chat, streamPrompt)
	}
	want := squeezed(strings.Join(words.Generated(streamDeltas, streamSize), ""))
	arrived := 0
	for i := range crowdSize {
		chat := s.private(i + 1)
		if err := s.awaitAnswers(ctx, chat, 1); err != nil {
			return nil, err
		}
		if strings.HasPrefix(squeezed(everyText(chat.View())), want) {
			arrived++
		}
	}
	after, err := s.cpu()
	if err != nil {
		return nil, err
	}
	peak, err := s.memory("VmHWM")
	if err != nil {
		return nil, err
	}
	return []figure{
		spent("20 such chats at once: processor time", after-before),
		{what: "the same: peak of resident memory", measured: mb(peak), target: "<= 28 MB", met: peak <= 28e6},
		{
			what: "the same: answers that arrived whole", measured: fmt.Sprint(arrived), target: fmt.Sprint(crowdSize),
			met: arrived == crowdSize, law: true,
		},
	}, nil
}

func spent(what string, cpu time.Duration) figure {
	const limit = 300 * time.Millisecond
	return figure{what: what, measured: ms(cpu), target: "<= " + ms(limit), met: cpu <= limit}
}

// longFigures are about a long answer: 100 kB in 5000 deltas, and twice as much, which may cost twice as
// much and no more. Ductor's budgets are out of the way, since 25 messages in a row would take half a minute.
func longFigures(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.newSite(siteOptions{name: "long", rates: noRates, people: 4})
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.startWarm(ctx); err != nil {
		return nil, err
	}
	var figures []figure
	var costs []time.Duration
	for i, n := range []int{1, 5000, 10000} { // the first is the warming up
		cost, whole, err := s.longAnswer(ctx, s.private(i+1), n, "")
		if err != nil {
			return nil, err
		}
		costs = append(costs, cost)
		if i > 0 {
			figures = append(figures, figure{
				what: fmt.Sprintf("%d kB in %d deltas: arrived whole", n/50, n), measured: fmt.Sprint(whole), target: "true", met: whole, law: true,
			})
		}
	}
	slow, _, err := s.longAnswer(ctx, s.private(4), 5000, " delay=1ms")
	if err != nil {
		return nil, err
	}
	growth := float64(costs[2]) / float64(costs[1])
	return append(figures,
		spent("100 kB in 5000 deltas, all at once: processor time", costs[1]),
		figure{what: "the same: 200 kB costs so many times as much", measured: fmt.Sprintf("%.1f", growth), target: "<= 2.5", met: growth <= 2.5},
		spent("100 kB in 5000 deltas, one a millisecond", slow),
	), nil
}

// longAnswer is what n deltas of 20 characters cost.
func (s *site) longAnswer(ctx context.Context, chat *telegram.Chat, n int, how string) (cost time.Duration, arrived bool, err error) {
	before, err := s.cpu()
	if err != nil {
		return 0, false, err
	}
	chat.Person().Send(chat, fmt.Sprintf(`[[text n=%d size=%d%s]]`, n, streamSize, how))
	if err := s.awaitAnswers(ctx, chat, 1); err != nil {
		return 0, false, err
	}
	after, err := s.cpu()
	want := squeezed(strings.Join(words.Generated(n, streamSize), ""))
	return after - before, strings.HasPrefix(squeezed(everyText(chat.View())), want), err
}

// idleFigures are about a ductor that waits.
func idleFigures(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.newSite(siteOptions{name: "idle"})
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.startWarm(ctx); err != nil {
		return nil, err
	}
	if err := pauseFor(ctx, 2*time.Second); err != nil {
		return nil, err
	}
	rss, err := s.memory("VmRSS")
	if err != nil {
		return nil, err
	}
	return []figure{{what: "resident memory while idle", measured: mb(rss), target: "<= 17 MB", met: rss <= 17e6}}, nil
}
