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

// Auth is the way in which a caller proves that it knows the secret.
type Auth string

const (
	// Bearer is "Authorization: Bearer <secret>". Deliveries with the same Idempotency-Key run once.
	Bearer Auth = "bearer"
	// GitHub is X-Hub-Signature-256: "sha256=" and the HMAC of the body in hex. The same body runs once.
	// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
	GitHub Auth = "github"
	// Stripe is Stripe-Signature: "t=<unix>,v1=<HMAC of t.body in hex>". The time t must be recent. The same event runs
	// once. https://docs.stripe.com/webhooks#verify-manually
	Stripe Auth = "stripe"
)

// Hook is a webhook, POST /hooks/{Name}, and the job that it starts.
type Hook struct {
	Name string
	Caller
	// Job runs for each delivery. Its Prompt is a template: {{payload}} stands for the body, and {{payload.a.b}} for a
	// part of a JSON body. Each is inserted between fences that tell the agent not to obey it. If the template has no
	// placeholder, the body follows the template.
	Job orchestrator.Job
}

// Caller configures how the caller of a webhook proves its identity, and how much it may send.
type Caller struct {
	Auth      Auth          `toml:"auth" default:"bearer" check:"bearer|github|stripe"`
	Secret    secrets.Value `toml:"secret"`
	BodyMaxKB int           `toml:"body_max_kb" default:"256" check:"1..1024"`
	PerMinute int           `toml:"per_minute" default:"30" check:"1..6000"` // accepted deliveries
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
	In     orchestrator.ConversationID `toml:",inline"` // zero: the private chat of the owner
	orchestrator.JobTurn
	orchestrator.QuietHours
}

// Check implements config.checker.
func (s HookSettings) Check(problem func(key, format string, args ...any)) {
	if s.QuietPolicy != orchestrator.QuietHold {
		problem("quiet_policy", "%q is not %q, the only policy of webhooks", s.QuietPolicy, orchestrator.QuietHold)
	}
}

// Settings configures the webhooks. ductor listens only if there is one.
type Settings struct {
	Listen string                  `toml:"listen" default:"127.0.0.1:8787"`
	Remote bool                    `toml:"remote"` // other machines may connect
	Hooks  map[string]HookSettings `toml:"hooks"`
}

// Defaults and limits of a Hook.
const (
	defaultBodyMaxKB = 256
	mostBodyMaxKB    = 1024
	defaultPerMinute = 30
	minSecret        = 16              // bytes
	tolerance        = 5 * time.Minute // maximum clock difference of a Stripe delivery
)

// hookName matches the allowed names, which need no escaping in URLs and IDs.
var hookName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,47}$`) })

// withDefaults sets empty fields to their defaults. It also sets the fields of the job that are the same for every
// hook.
func (h Hook) withDefaults() Hook {
	h.BodyMaxKB, h.PerMinute = cmp.Or(h.BodyMaxKB, defaultBodyMaxKB), cmp.Or(h.PerMinute, defaultPerMinute)
	h.Job.Name, h.Job.Kind, h.Job.Schedule, h.Job.Overlap = h.Name, orchestrator.JobHook, "", orchestrator.OverlapQueue
	return h
}

// check validates a hook with defaults. It does not check the prompt template; see parseTemplate.
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

// Result is the store's result for a delivery.
type Result string

const (
	Recorded  Result = "recorded" // the run is stored
	Repeated  Result = "repeated" // known event with a new signature; the store keeps nothing
	Replayed  Result = "replayed" // known signature; the store keeps nothing
	QueueFull Result = "full"     // orchestrator.MostQueuedRuns runs of the hook are waiting
	Paused    Result = "paused"   // a user has paused the hook's job
)

// Store stores deliveries. internal/store implements it.
type Store interface {
	// RecordDelivery atomically stores the run of a delivery with its signature and event. It returns
	// orchestrator.ErrNoJob for an unknown job. The data is durable when RecordDelivery returns.
	RecordDelivery(ctx context.Context, d Delivery) (Result, error)
	// PruneDeliveries deletes signatures and events older than before, and returns their number.
	PruneDeliveries(ctx context.Context, before time.Time) (int64, error)
}

// Delivery is an authenticated call of a webhook.
type Delivery struct {
	Signature string // of exactly this delivery; empty for a bearer
	Event     string // the sender's event ID or the idempotency key; may be empty
	At        time.Time
	Run       orchestrator.JobRun
}

// RetentionAge is how long the store keeps signatures and events. After that, a GitHub body can be replayed.
const RetentionAge = 90 * 24 * time.Hour

var errUnsigned = errors.New("the signature is missing or wrong")
