package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// Auth determines how a caller proves that it knows the secret.
type Auth string

const (
	// Bearer means the header "Authorization: Bearer <secret>". Of several deliveries with the same Idempotency-Key,
	// only the first runs.
	Bearer Auth = "bearer"
	// GitHub means the header "X-Hub-Signature-256: sha256=<HMAC of the body in hex>". Of several deliveries with the
	// same body, only the first runs.
	//
	// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
	GitHub Auth = "github"
	// Stripe means the header "Stripe-Signature: t=<unix>,v1=<HMAC of t.body in hex>". The time t must be recent. Of
	// several deliveries of the same event, only the first runs.
	//
	// https://docs.stripe.com/webhooks#verify-manually
	Stripe Auth = "stripe"
)

// Hook is a webhook, at POST /hooks/{Name}, and the job that it starts.
type Hook struct {
	Name string
	Caller
	// Job runs for each delivery. Its Prompt is a template: {{payload}} stands for the body, and {{payload.a.b}} for a
	// part of a JSON body. If the template has no placeholder, the body is added at the end. The inserted text is
	// between lines that tell the agent not to obey it.
	Job orchestrator.Job
}

// Caller configures how the caller of a webhook authenticates, and how much it may send.
type Caller struct {
	Auth      Auth          `toml:"auth" default:"bearer" check:"bearer|github|stripe"`
	Secret    secrets.Value `toml:"secret"`
	BodyMaxKB int           `toml:"body_max_kb" default:"256" check:"1..1024"`
	PerMinute int           `toml:"per_minute" default:"30" check:"1..6000"` // deliveries that are accepted in a minute
}

// Check implements config.checker.
func (c Caller) Check(problem func(key, format string, args ...any)) {
	if len(c.Secret) < minSecret {
		problem("secret", "a secret has at least %d characters; make one by: openssl rand -hex 32", minSecret)
	}
}

// HookSettings configures a webhook.
type HookSettings struct {
	Caller
	Prompt string                      `toml:"prompt"`
	In     orchestrator.ConversationID `toml:",inline"` // zero means the private chat of the user who set up the bot
	orchestrator.JobTurn
	orchestrator.QuietHours
}

// Check implements config.checker.
func (s HookSettings) Check(problem func(key, format string, args ...any)) {
	if s.QuietPolicy != orchestrator.QuietHold {
		problem("quiet_policy", "%q is not %q, the only policy of webhooks", s.QuietPolicy, orchestrator.QuietHold)
	}
}

// Settings configures all webhooks. Without webhooks, ductor does not listen.
type Settings struct {
	Listen string                  `toml:"listen" default:"127.0.0.1:8787"`
	Remote bool                    `toml:"remote"` // accept connections from other machines
	Hooks  map[string]HookSettings `toml:"hooks"`
}

// Defaults and limits of a Hook.
const (
	defaultBodyMaxKB = 256
	mostBodyMaxKB    = 1024
	defaultPerMinute = 30
	minSecret        = 16              // bytes
	tolerance        = 5 * time.Minute // greatest difference between Stripe's clock and ours
)

// hookName matches valid names of hooks. They need no escaping in URLs and IDs.
var hookName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,47}$`) })

// withDefaults sets empty fields to their defaults. It also sets the fields of the job that do not depend on the
// settings.
func (h Hook) withDefaults() Hook {
	h.BodyMaxKB, h.PerMinute = cmp.Or(h.BodyMaxKB, defaultBodyMaxKB), cmp.Or(h.PerMinute, defaultPerMinute)
	h.Job.Name, h.Job.Kind, h.Job.Schedule, h.Job.Overlap = h.Name, orchestrator.JobHook, "", orchestrator.OverlapQueue
	return h
}

// check validates a hook whose defaults are set. It does not check the prompt's template; see parseTemplate.
func (h Hook) check() error {
	switch {
	case !hookName().MatchString(h.Name):
		return fmt.Errorf("a webhook has a name of at most 48 small letters, digits, - and _, not %q", h.Name)
	case h.Auth != Bearer && h.Auth != GitHub && h.Auth != Stripe:
		return fmt.Errorf("webhook %s: auth is \"bearer\", \"github\" or \"stripe\", not %q", h.Name, h.Auth)
	case len(h.Secret) < minSecret:
		return fmt.Errorf("webhook %s: the secret is shorter than %d characters", h.Name, minSecret)
	case h.BodyMaxKB < 0 || h.BodyMaxKB > mostBodyMaxKB:
		return fmt.Errorf("webhook %s: bodies have at most %d kB", h.Name, mostBodyMaxKB)
	case h.PerMinute < 0 || h.PerMinute > 6000:
		return fmt.Errorf("webhook %s: 1 to 6000 deliveries a minute", h.Name)
	}
	return nil
}

// Result describes how the store handled a delivery.
type Result string

const (
	Recorded  Result = "recorded" // the run was stored
	Repeated  Result = "repeated" // nothing was stored, because the event is known, although with another signature
	Replayed  Result = "replayed" // nothing was stored, because the signature is known
	QueueFull Result = "full"     // nothing was stored, because MostQueuedRuns runs of the hook are waiting
	Paused    Result = "paused"   // nothing was stored, because a user has paused the hook's job
)

// Store stores deliveries. internal/store implements it.
type Store interface {
	// RecordDelivery stores the run of a delivery with its signature and event, in one transaction. The data is durable
	// when RecordDelivery returns. It returns orchestrator.ErrNoJob if the job does not exist.
	RecordDelivery(ctx context.Context, d Delivery) (Result, error)
	// PruneDeliveries deletes the signatures and events from before a time. It returns their number.
	PruneDeliveries(ctx context.Context, before time.Time) (int64, error)
}

// Delivery is an authenticated call of a webhook.
type Delivery struct {
	Signature string // different for each delivery; empty for Bearer
	Event     string // the sender's ID of the event, or its Idempotency-Key; may be empty
	At        time.Time
	Run       orchestrator.JobRun
}

// RetentionAge is how long the store contains signatures and events. After this time, a caller could repeat an old
// signed delivery of GitHub.
const RetentionAge = 90 * 24 * time.Hour

var errUnsigned = errors.New("the signature is missing or wrong")
