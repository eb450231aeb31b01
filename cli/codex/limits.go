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

// rateLimits are the limits of a plan, or of the models with this name.
type rateLimits struct {
	Primary   *rateWindow `json:"primary"`
	Secondary *rateWindow `json:"secondary"`
	Name      string      `json:"limitName"` // empty for the plan
}

type rateWindow struct {
	Used     float64 `json:"usedPercent"`
	Minutes  float64 `json:"windowDurationMins"` // 0 if Codex does not report it
	ResetsAt float64 `json:"resetsAt"`           // seconds since 1970
}

// turnLimit is the reached limit of a turn.
type turnLimit struct {
	model   string // the turn's model; empty if unknown
	reached bool
	ends    time.Time // zero if unknown
}

// limitsUpdated is the notification of new limits. It has only the last limits of those that the account has.
const limitsUpdated = "account/rateLimits/updated"

// readLimits requests all limits of the account, at most once in a minute. The running turns get them. Only the reading
// goroutine calls it.
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
			_ = m.Read(Agent, "account/rateLimits/read", &all) // only accounts of ChatGPT have limits
			for _, id := range slices.Sorted(maps.Keys(all.ByID)) {
				for _, s := range h.All() {
					n := news{method: limitsUpdated, notice: &notice{RateLimits: all.ByID[id]}}
					s.Deliver(shared.Item[news]{End: m.End, Message: n}, 0)
				}
			}
		},
	})
}

// rateLimits handles limits that Codex reports. It warns of a reached limit of the plan or of the turn's model.
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
		return // it does not limit this turn
	}
	for _, l := range reported.Limits {
		if l.Used >= 1 && (!p.limit.reached || l.Resets.After(p.limit.ends)) {
			p.limit.reached, p.limit.ends = true, l.Resets
			p.out.Pass(cli.RateLimited{ResetAt: l.Resets})
		}
	}
}
