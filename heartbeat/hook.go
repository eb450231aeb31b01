package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"
)

// Secret is what a webhook's caller must know. It shows itself in no text and no log.
type Secret string

// String hides it.
func (Secret) String() string { return "[secret]" }

// GoString hides it from %#v.
func (Secret) GoString() string { return "[secret]" }

// LogValue hides it from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// HookAuth is how the caller of a webhook proves that it knows the secret.
type HookAuth string

// The ways of proving it.
const (
	// HookBearer is "Authorization: Bearer <secret>". A delivery with an Idempotency-Key runs once.
	HookBearer HookAuth = "bearer"
	// HookGitHub is X-Hub-Signature-256: "sha256=" and the HMAC of the body in hex. The same body is taken once.
	// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
	HookGitHub HookAuth = "github"
	// HookStripe is Stripe-Signature: "t=<unix>,v1=<HMAC of t.body in hex>", and t must be recent. The same event is
	// taken once. https://docs.stripe.com/webhooks#verify-manually
	HookStripe HookAuth = "stripe"
)

// Hook is one webhook, POST /hooks/{Name}, and the job it starts.
type Hook struct {
	Name   string
	Auth   HookAuth
	Secret Secret
	// Job is what is run. Its Prompt is a template: {{payload}} is where the body goes, {{payload.a.b}} a part of a JSON
	// body, each between fences that tell the agent not to obey it. A prompt without either gets the body after it.
	Job       Job
	BodyMax   int64         // bytes; DefaultBodyMax when 0
	PerMinute int           // deliveries taken a minute; DefaultPerMinute when 0
	Tolerance time.Duration // how old or early a Stripe delivery may be; DefaultTolerance when 0
}

// Defaults and bounds of a Hook.
const (
	DefaultBodyMax   = 256 << 10
	MostBodyMax      = 1 << 20
	DefaultPerMinute = 30
	DefaultTolerance = 5 * time.Minute
	leastSecret      = 16 // bytes
)

// hookName keeps names plain: they stand in URLs and in ids.
var hookName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,47}$`)

// filled sets what was left open, and makes the job that of a hook.
func (h Hook) filled() Hook {
	if h.BodyMax == 0 {
		h.BodyMax = DefaultBodyMax
	}
	if h.PerMinute == 0 {
		h.PerMinute = DefaultPerMinute
	}
	if h.Tolerance == 0 {
		h.Tolerance = DefaultTolerance
	}
	h.Job.Name, h.Job.Kind, h.Job.Schedule, h.Job.Overlap, h.Job.Enabled = h.Name, KindHook, "", OverlapQueue, true
	return h
}

// check says what is wrong with a filled hook.
func (h Hook) check() error {
	switch {
	case !hookName.MatchString(h.Name):
		return fmt.Errorf("a webhook is called by small letters, digits, - and _, at most 48, not %q", h.Name)
	case h.Auth != HookBearer && h.Auth != HookGitHub && h.Auth != HookStripe:
		return fmt.Errorf("webhook %s: auth is \"bearer\", \"github\" or \"stripe\", not %q", h.Name, h.Auth)
	case len(h.Secret) < leastSecret:
		return fmt.Errorf("webhook %s: the secret is shorter than %d characters", h.Name, leastSecret)
	case h.BodyMax < 0 || h.BodyMax > MostBodyMax:
		return fmt.Errorf("webhook %s: bodies are at most %d bytes", h.Name, MostBodyMax)
	case h.PerMinute < 0 || h.PerMinute > 6000:
		return fmt.Errorf("webhook %s: 1 to 6000 deliveries a minute", h.Name)
	case h.Tolerance < time.Second || h.Tolerance > time.Hour:
		return fmt.Errorf("webhook %s: a tolerance is 1s to 1h", h.Name)
	}
	if _, err := parseTemplate(h.Job.Prompt); err != nil {
		return fmt.Errorf("webhook %s: %w", h.Name, err)
	}
	return nil
}

// Taken says what became of a delivery.
type Taken string

// What becomes of a delivery.
const (
	TakenNow    Taken = "now"    // its run is recorded
	TakenBefore Taken = "before" // it is an event that was taken, sent again in good faith; nothing is recorded
	Replayed    Taken = "replay" // it is, to the letter, one that was taken
	TakenFull   Taken = "full"   // MostQueued runs of the hook wait already
	TakenPaused Taken = "paused" // somebody paused the hook's job
)

// HookStore remembers deliveries. internal/store implements it.
type HookStore interface {
	// TakeHook records a run and the seals of its delivery, all or none. A seal says that a delivery is the
	// same to the letter, event that it is the same event; either may be empty. ErrNoJob if the run's job is
	// not there. Durable when it returns.
	TakeHook(ctx context.Context, d Delivery) (Taken, error)
	// ForgetHooks forgets seals that are older than before, and says how many.
	ForgetHooks(ctx context.Context, before time.Time) (int64, error)
}

// Delivery is one call of a webhook.
type Delivery struct {
	Seal  string
	Event string
	At    time.Time
	Run   Run
}

// SealAge is how long deliveries are remembered. A GitHub body can be replayed after that.
const SealAge = 90 * 24 * time.Hour

var errUnsigned = errors.New("the signature is missing or wrong")
