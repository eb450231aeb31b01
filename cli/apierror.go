package cli

import (
	"cmp"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// APIError is an error of a model's API, as the agent reports it. Each field may be empty.
type APIError struct {
	Status int    // the HTTP status
	Name   string // what the API or the agent calls the error, such as overloaded_error
	Text   string // the message; may contain the API's JSON
}

// Kind derives the kind of failure from the HTTP status. If the status is missing or only means a bad request, Kind
// uses the error names in Name and Text. If these contain no known name, Kind searches Text for known phrases.
func (e APIError) Kind() FailureKind {
	if SaysContextFull(e.Text) {
		return ContextFull
	}
	kind, named := kindOfStatus(cmp.Or(e.Status, statusIn(e.Text))), kindOfNames(e)
	// Prefer the error's name if there is no status, or if the status only means a bad request.
	if (kind == "" || kind == Refused) && named != "" && named != APIFailed {
		kind = named
	}
	// Gemini reports a broken stream with status 500.
	if (kind == "" || kind == APIFailed) && lostConnection().MatchString(e.Text) {
		return NetworkDown
	}
	switch kind {
	// Some APIs also use the HTTP statuses of these kinds for a reached limit or an expired log-in.
	case Refused, Forbidden:
		return cmp.Or(sharpKind(e.Text), kind)
	// Gemini reports a used-up plan with status 500.
	case APIFailed:
		if limitWords().MatchString(e.Text) {
			return LimitReached
		}
	case "":
		if kind = KindOfWords(": "+strings.ToLower(e.Text), looseWords()); kind == UnknownFailure {
			kind = cmp.Or(named, kind)
		}
	}
	return kind
}

func kindOfStatus(status int) FailureKind {
	switch status {
	case http.StatusUnauthorized:
		return NotLoggedIn
	case http.StatusForbidden:
		return Forbidden
	case http.StatusNotFound:
		return UnknownModel
	case http.StatusPaymentRequired, http.StatusTooManyRequests:
		return LimitReached
	case http.StatusServiceUnavailable, 529:
		return Overloaded
	}
	switch {
	case status == http.StatusRequestTimeout, status/100 == 5:
		return APIFailed
	case status/100 == 4:
		return Refused
	}
	return ""
}

// errorNames maps the error names of APIs and agents to kinds of failure. The keys are in lower case and contain only
// letters.
var errorNames = sync.OnceValue(func() map[string]FailureKind {
	names := map[string]FailureKind{}
	for kind, all := range map[FailureKind]string{
		NotLoggedIn:  "authentication transientautherror authenticationerror authenticationfailed unauthorized unauthenticated invalidapikey providerautherror",
		Forbidden:    "authorization permissionerror permissiondenied oauthorgnotallowed requestforbidden unsupportedcountryregionterritory",
		LimitReached: "ratelimit ratelimiterror ratelimitexceeded usagelimitexceeded usagelimitreached quota insufficientquota resourceexhausted billingerror",
		Overloaded:   "overloaded overloadederror serveroverloaded serverisoverloaded unavailable flexunavailable policycapacityunavailable",
		APIFailed:    "servererror internalservererror",
		UnknownModel: "modelnotfound",
		ContextFull:  "contextlimit contextlengthexceeded contextwindowexceeded contextoverflowerror",
		LimitOfTurn:  "sessionbudgetexceeded",
		DeniedTools:  "toomanydenials",
		AnswerCut:    "maxoutputtokens",
		NetworkDown:  "httpconnectionfailed responsestreamconnectionfailed streamingerror",
		Refused: "invalidrequest invalidrequesterror invalidargument badrequest policy cyberpolicy misalignmentpolicyviolation " +
			"inferencehookdenied",
	} {
		for name := range strings.FieldsSeq(all) {
			names[name] = kind
		}
	}
	return names
})

var (
	nameInText = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`"(?:type|code|status|errorName)"\s*:\s*"([A-Za-z_]+)"`)
	})
	statusInText = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(?:^|\b(?:repeated|http|error:?) |\bstatus(?:[ _]?code)?(?: of|"\s*:|[:=])? ?|"code"\s*:\s*)"?([45]\d\d)\b|\(([45]\d\d)\)`)
	})
	// lostConnection matches the messages of HTTP libraries about broken connections.
	lostConnection = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:econn\w+|enotfound|etimedout|epipe|fetch failed|socket hang up|premature close|other side closed|connection (?:reset|closed|lost)|model stream ended)\b|` +
			`(?:^|: )(?:terminated|connection error\.?)(?:$| \{)`)
	})
	notLetters = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z]`) })
)

// kindOfNames returns the kind of failure that the error's names indicate. It returns Refused or APIFailed only if no
// name is more precise, because OpenAI's API calls most errors an invalid request.
func kindOfNames(e APIError) FailureKind {
	names := []string{e.Name}
	for _, m := range nameInText().FindAllStringSubmatch(e.Text, -1) {
		names = append(names, m[1])
	}
	var last FailureKind
	for _, name := range names {
		switch kind := errorNames()[notLetters().ReplaceAllString(strings.ToLower(name), "")]; kind {
		case "":
		case Refused, APIFailed:
			last = kind
		default:
			return kind
		}
	}
	return last
}

func statusIn(text string) int {
	m := statusInText().FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	status, _ := strconv.Atoi(m[1] + m[2]) // the pattern matches three digits
	return status
}

// looseWords lists phrases, in lower case. APIError.Kind searches for them if an error has neither a status nor a known
// name.
func looseWords() []Words {
	return []Words{
		{NotLoggedIn, []string{"authentication required", "unauthorized", "unauthenticated", "not logged in",
			"invalid api key", "incorrect api key", "please log in",
			"codex login", "missing environment variable", "no authentication information", "not authenticated",
			"no github oauth token"}},
		{LimitReached, []string{"rate limit", "quota", "too many requests", "usage limit"}},
		{APIFailed, []string{"internal server error", "server had an error", "experiencing high demand",
			"bad gateway", "server_error"}},
		{Overloaded, []string{"overloaded", "at capacity", "unavailable"}},
		{NetworkDown, []string{"network error", "waiting for network", "connection error", "connection failed",
			"unable to connect", "error sending request", "stream disconnected",
			"http request"}},
		{UnknownModel, []string{"model not found", "unknown model", "not-a-model", "model_not_found",
			"is not found for api version",
			"does not exist or you do not have access", "not found on provider"}},
		{Forbidden, []string{": forbidden", "not have permission", "request not allowed",
			"region, or territory not supported", "not have access to"}},
	}
}
