package claude

import (
	"fmt"
	"time"

	"ductor/cli"
)

func (p *parser) systemStatus(l *line) {
	if l.Mode != "" {
		p.mem.mode = l.Mode
	}
	switch status := l.Status; {
	case status == nil:
		p.setStatus(cli.StatusIdle, "")
	case *status == "requesting":
		p.setStatus(cli.StatusWaiting, "")
	case *status == "compacting":
		p.setStatus(cli.StatusCompacting, "")
	}
}

// retry shows that the API is asked again. A log-in that is not accepted would be tried for minutes, so
// it ends the turn at once; an account that can refresh its log-in gets one try for that.
func (p *parser) retry(l *line) (end bool) {
	p.trouble.network = l.ErrorStatus == nil
	refused := l.ErrorStatus != nil && *l.ErrorStatus == 401
	canRefresh := p.source == "none" || p.source == "oauth"
	if refused && (l.Attempt > 1 || !canRefresh) {
		p.outcome.Err = cli.Failf(cli.NotLoggedIn, agent, "the model's API did not accept the log-in (401)")
		p.mustStop = true
		return true
	}
	detail := fmt.Sprintf("%s; trying again (%d of %d)", retryStatus(l), l.Attempt, l.MaxRetries)
	if wait := time.Duration(l.RetryDelayMS * float64(time.Millisecond)).Round(time.Second); wait >= time.Second {
		detail += " in " + wait.String()
	}
	p.setStatus(cli.StatusRetrying, detail)
	return false
}

func (p *parser) warnServers(servers []mcpServer) {
	for _, s := range servers {
		if s.Status != "failed" || p.mem.warned[s.Name] {
			continue
		}
		p.mem.warned[s.Name] = true
		p.em.Pass(cli.Status{Kind: cli.StatusWarning, Detail: oneLine("MCP server " + s.Name + " could not be started")})
	}
}

// setStatus passes a status on when it says something new; idle only ends one that was shown.
func (p *parser) setStatus(kind cli.StatusKind, detail string) {
	if kind == cli.StatusIdle && p.status == "" || kind == p.status && detail == "" {
		return
	}
	p.status = kind
	if kind == cli.StatusIdle {
		p.status = ""
	}
	p.em.Pass(cli.Status{Kind: kind, Detail: detail})
}

func (p *parser) rateLimit(r *rateLimit) {
	if r == nil || r.Status != "allowed_warning" && r.Status != "rejected" {
		return
	}
	var reset time.Time
	if r.ResetsAt > 0 {
		reset = time.Unix(r.ResetsAt, 0)
	}
	if r.Status == "rejected" {
		p.trouble.resetAt = reset
	}
	p.em.Pass(cli.RateLimited{ResetAt: reset})
}
