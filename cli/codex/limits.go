package codex

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
)

// rateLimits are usage limits of the user's plan. If Name is set, they apply only to models with this name.
type rateLimits struct {
	Primary   *rateWindow `json:"primary"`
	Secondary *rateWindow `json:"secondary"`
	Name      string      `json:"limitName"` // empty if the limits apply to all models
}

type rateWindow struct {
	Used     float64 `json:"usedPercent"`
	Minutes  float64 `json:"windowDurationMins"` // 0 if Codex does not report it
	ResetsAt float64 `json:"resetsAt"`           // seconds since 1970
}

// turnLimit is the usage limit that a turn has reached, if any.
type turnLimit struct {
	model   string // the turn's model; empty if unknown
	reached bool
	ends    time.Time // when the limit resets; zero if unknown
}

// limitsUpdated is the notification that limits have changed. It contains only some of the account's limits.
const limitsUpdated = "account/rateLimits/updated"

// readLimits requests all limits of the account, at most once a minute. The running turns receive the limits. Only the
// goroutine that reads Codex's output calls readLimits.
func (h *server) readLimits() {
	if time.Since(h.limitsRead) < time.Minute || h.Peer().Past() {
		return
	}
	h.limitsRead = time.Now()
	h.Peer().Ask(context.Background(), rpc.Prompt{
		ID: h.Peer().NextID(), Method: "account/rateLimits/read", Params: struct{}{},
		Mark: func(int) cli.Mark { return cli.Mark{} }, Unsent: func(error) {},
		Answered: func(m rpc.Message) {
			var all struct {
				ByID map[string]rateLimits `json:"rateLimitsByLimitId"`
			}
			_ = m.Read(Agent, "account/rateLimits/read", &all) // an error means that the account has no limits
			for _, id := range slices.Sorted(maps.Keys(all.ByID)) {
				for _, s := range h.All() {
					n := news{method: limitsUpdated, notice: &notice{RateLimits: all.ByID[id]}}
					s.Deliver(shared.Item[news]{End: m.End, Message: n}, 0)
				}
			}
		},
	})
}

// rateLimits emits the reported limits. It warns the user if the limit of the plan, or of the turn's model, is reached.
func (p *liveParser) rateLimits(r rateLimits) {
	var reported cli.LimitsReported
	for _, w := range []*rateWindow{r.Primary, r.Secondary} {
		if w != nil {
			span := time.Duration(min(max(w.Minutes, 0), 1e6)) * time.Minute
			reported.Limits = append(reported.Limits, cli.PlanLimit{
				Window: cli.LimitWindow{Span: span, Of: r.Name}, Used: w.Used / 100, Resets: cli.UnixTime(w.ResetsAt),
			})
		}
	}
	if len(reported.Limits) == 0 {
		return
	}
	p.out.Pass(reported)
	if r.Name != "" && !strings.EqualFold(r.Name, p.limit.model) {
		return // the limit is for another model than that of the turn
	}
	for _, l := range reported.Limits {
		if l.Used >= 1 && (!p.limit.reached || l.Resets.After(p.limit.ends)) {
			p.limit.reached, p.limit.ends = true, l.Resets
			p.out.Pass(cli.RateLimited{ResetAt: l.Resets})
		}
	}
}
