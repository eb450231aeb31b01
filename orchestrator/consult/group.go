package consult

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
)

// Group implements orchestrator.Consults.
func (e *Engine) Group(ctx context.Context, q orchestrator.GroupQuestion,
	step func(orchestrator.GroupStep)) (all orchestrator.GroupAnswer, err error) {
	if len(q.Panel) < orchestrator.GroupLeast || len(q.Panel) > orchestrator.GroupMost || q.Rounds < 1 ||
		q.Rounds > orchestrator.GroupRounds {
		return all, orchestrator.ErrBadChoice
	}
	s, err := e.opts.Session(ctx, q.ConsultQuestion)
	if err != nil {
		return all, err
	}
	q.Session = string(s.ID)
	var mu sync.Mutex
	told := func(s orchestrator.GroupStep) {
		mu.Lock()
		defer mu.Unlock()
		step(s)
	}
	var said []cli.TurnID // IDs of the entries that contain answers of the group
	for round := 1; round <= q.Rounds; round++ {
		q.Conversation = e.currentID(ctx, q.Conversation)
		if s, err = e.opts.Session(ctx, q.ConsultQuestion); err != nil {
			return all, err
		}
		all.Steps = e.round(ctx, q, round, all.Steps, approach{upTo: s.Newest, quoted: said}, told)
		for _, step := range all.Steps {
			said = append(said, step.Answer.Entry)
		}
		if err := ended(all.Steps...); err != nil {
			return all, err
		}
		if len(answered(all.Steps)) < orchestrator.GroupLeast {
			return all, orchestrator.ErrNoGroup
		}
	}
	all.Conclusion = e.conclude(ctx, q, all.Steps, said)
	told(all.Conclusion)
	return all, ended(all.Conclusion)
}

func ended(steps ...orchestrator.GroupStep) error {
	for _, s := range steps {
		if errors.Is(s.Err, cli.ErrAborted) || errors.Is(s.Err, orchestrator.ErrShutdown) ||
			errors.Is(s.Err, context.Canceled) {
			return s.Err
		}
	}
	return nil
}

func answered(steps []orchestrator.GroupStep) []orchestrator.GroupStep {
	return slices.DeleteFunc(slices.Clone(steps), func(s orchestrator.GroupStep) bool { return s.Err != nil })
}

// round asks each model that answered in the previous round. From the second round on, each model gets the answers that
// the other models gave in the previous round. The history ends at the entry by.upTo, so that a model does not see
// answers of the current round.
func (e *Engine) round(ctx context.Context, q orchestrator.GroupQuestion, round int, before []orchestrator.GroupStep,
	by approach, told func(orchestrator.GroupStep)) []orchestrator.GroupStep {
	steps := make([]orchestrator.GroupStep, len(q.Panel))
	var asked sync.WaitGroup
	for i, m := range q.Panel {
		ask, by := q.ConsultQuestion, by
		ask.Model = m
		if round > 1 {
			if before[i].Err != nil {
				steps[i] = before[i]
				continue
			}
			others := slices.Delete(slices.Clone(before), i, i+1)
			ask.Text, ask.Context = reconsider, orchestrator.ContextFiles{}
			by.otherAnswers = "\n\n" + quoted(others)
			// The prompt does not quote the model's own answer, so the history must not leave it out.
			own := before[i].Answer.Entry
			by.quoted = slices.DeleteFunc(slices.Clone(by.quoted), func(id cli.TurnID) bool { return id == own })
		}
		asked.Go(func() {
			a, err := e.consult(ctx, ask, by)
			steps[i] = orchestrator.GroupStep{Round: round, Model: m, Answer: a, Err: err}
			told(steps[i])
		})
	}
	asked.Wait()
	return steps
}

const (
	reconsider = "Other models answered the same question. " +
		"Say where they are right and you were wrong, and where not; then answer the question again."
	weigh = "Several models answered a question. Weigh their answers, say where they disagree, and conclude.\n\n" +
		"The question:\n"
)

// conclude asks for a conclusion that sums up the answers. It asks the first model that answered, but in a new agent
// session: in its old session the model would prefer its own answer.
func (e *Engine) conclude(ctx context.Context, q orchestrator.GroupQuestion,
	steps []orchestrator.GroupStep, said []cli.TurnID) orchestrator.GroupStep {
	s := orchestrator.GroupStep{Round: q.Rounds + 1, Model: answered(steps)[0].Model}
	ask := q.ConsultQuestion
	ask.Model, ask.Text = s.Model, weigh+q.Text
	s.Answer, s.Err = e.consult(ctx, ask, approach{fresh: true, upTo: math.MaxInt64, quoted: said,
		otherAnswers: "\n\nThe answers:\n\n" + quoted(steps)})
	return s
}

// quoted formats the models' answers for the prompt of another model.
func quoted(steps []orchestrator.GroupStep) string {
	var b strings.Builder
	for _, s := range answered(steps) {
		fmt.Fprintf(&b, "<answer from=%q>\n%s\n</answer>\n\n", s.Answer.Model.String(), s.Answer.Text)
	}
	return b.String()
}

// Typical numbers of tokens, for Estimate. The true numbers differ between agents, and ductor does not know them before
// it asks an agent.
const (
	usualStart  = 15_000 // tokens of an agent's system prompt, with its tools
	usualAnswer = 800    // tokens of one answer
)

// Estimate implements orchestrator.Consults.
func (e *Engine) Estimate(q orchestrator.GroupQuestion, models []cli.MenuEntry) (sum orchestrator.Estimate) {
	if len(q.Panel) == 0 {
		return sum
	}
	question := int64(handoff.Tokens(q.Text))
	answers := int64(len(q.Panel) * usualAnswer)
	add := func(m orchestrator.ModelChoice, in int64) {
		sum.Questions++
		sum.Tokens += in + usualAnswer
		price := priceOf(m, models)
		if price == (cli.Price{}) {
			sum.Unpriced++
		}
		sum.CostUSD += price.Of(in, usualAnswer)
	}
	for round := range q.Rounds {
		for _, m := range q.Panel {
			// In later rounds, the model reads all earlier messages again.
			add(m, usualStart+question+int64(round)*(answers+question))
		}
	}
	add(q.Panel[0], usualStart+question+answers)
	return sum
}

func priceOf(m orchestrator.ModelChoice, entries []cli.MenuEntry) cli.Price {
	for _, e := range entries {
		for _, known := range e.Models {
			if e.Agent == m.Agent && (known.ID == m.Model || m.Model == "" && known.Default) {
				return known.Price
			}
		}
	}
	return cli.Price{}
}
