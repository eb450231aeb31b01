package cli

import "testing"

func TestTheKindOfAnErrorOfAModel(t *testing.T) {
	openAI := `{"error":{"message":"no","type":"invalid_request_error","code":"invalid_api_key"}}`
	for _, c := range []struct {
		e    APIError
		want FailureKind
	}{
		{APIError{Status: 400}, Refused},
		{APIError{Status: 401}, NotLoggedIn},
		{APIError{Status: 402}, LimitReached},
		{APIError{Status: 403}, Forbidden},
		{APIError{Status: 404}, UnknownModel},
		{APIError{Status: 408}, APIFailed},
		{APIError{Status: 413}, Refused},
		{APIError{Status: 429}, LimitReached},
		{APIError{Status: 500, Text: "You have exhausted your capacity on this model."}, LimitReached},
		{APIError{Status: 500, Text: "Internal error encountered."}, APIFailed},
		{APIError{Status: 500}, APIFailed},
		{APIError{Status: 502}, APIFailed},
		{APIError{Status: 503}, Overloaded},
		{APIError{Status: 504}, APIFailed},
		{APIError{Status: 529}, Overloaded},
		{APIError{Status: 200}, UnknownFailure},

		// The status counts if the name is wrong, and a name counts if it is more precise than an invalid request.
		{APIError{Status: 403, Name: "authentication_failed", Text: "Failed to authenticate. API Error: 403 no"}, Forbidden},
		{APIError{Status: 500, Name: "query", Text: "500 Overloaded"}, APIFailed},
		{APIError{Status: 400, Name: "billing_error"}, LimitReached},
		{APIError{Status: 400, Text: "Your credit balance is too low to access the API."}, LimitReached},
		{APIError{Status: 400, Text: `{"error":{"message":"API key not valid.","status":"INVALID_ARGUMENT"}}`}, NotLoggedIn},
		{APIError{Status: 403, Text: "OAuth token has been revoked."}, NotLoggedIn},
		{APIError{Status: 400, Text: "prompt is too long: 210000 tokens > 200000 maximum"}, ContextFull},
		{APIError{Status: 400, Text: "the image is unavailable"}, Refused},

		// Names.
		{APIError{Name: "usageLimitExceeded"}, LimitReached},
		{APIError{Name: "rate_limit"}, LimitReached},
		{APIError{Name: "serverOverloaded"}, Overloaded},
		{APIError{Name: "internalServerError"}, APIFailed},
		{APIError{Name: "server_error", Text: "Overloaded"}, Overloaded},
		{APIError{Name: "badRequest", Text: "the network is unavailable"}, Refused},
		{APIError{Name: "context_limit"}, ContextFull},
		{APIError{Name: "unknown", Text: "no idea"}, UnknownFailure},

		// Status or name inside the text.
		{APIError{Text: openAI}, NotLoggedIn},
		{APIError{Text: `{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}`}, LimitReached},
		{APIError{Text: `{"statusCode": 503}`}, Overloaded},
		{APIError{Text: "unexpected status 403 Forbidden: no"}, Forbidden},
		{APIError{Text: "exceeded retry limit, last status: 429 Too Many Requests"}, LimitReached},
		{APIError{Text: "API Error: Repeated 529 Overloaded errors."}, Overloaded},
		{APIError{Text: "API Error: Request rejected (429) · later"}, LimitReached},
		{APIError{Text: "Authentication failed with provider at http://127.0.0.1/v1 (HTTP 401)."}, NotLoggedIn},
		{APIError{Text: "401 status code (no body)"}, NotLoggedIn},
		{APIError{Text: "4000 things"}, UnknownFailure},
		{APIError{Text: "it waited (500 ms)"}, UnknownFailure},
		{APIError{Text: "line 404 is too long"}, UnknownFailure},

		// Only words. OpenCode calls every API error that, and passes on no status.
		{APIError{Text: `Incorrect API key provided. {"service":"session","errorName":"APIError"}`}, NotLoggedIn},
		{APIError{Text: `The server had an error while processing your request. {"service":"session","errorName":"APIError"}`}, APIFailed},
		{APIError{Text: `no {"service":"session","errorName":"APIError"}`}, UnknownFailure},
		{APIError{Text: "Conversation history too large to compact - exceeds model context limit"}, ContextFull},
		{APIError{Text: "Session too large to compact - context exceeds model limit even after stripping media"}, ContextFull},
		{APIError{Text: "Selected model is at capacity."}, Overloaded},
		{APIError{Text: "We’re currently experiencing high demand, which may cause temporary errors."}, APIFailed},
		{APIError{Text: "fetch failed"}, NetworkDown},
		{APIError{Text: "terminated"}, NetworkDown},
		{APIError{Text: "a tool was terminated"}, UnknownFailure},
		{APIError{Status: 500, Text: "terminated"}, NetworkDown}, // Gemini
		{APIError{Status: 500, Text: "the job was terminated"}, APIFailed},
		{APIError{Text: `terminated {"service":"session","errorName":"UnknownError"}`}, NetworkDown},
		{APIError{Text: "TypeError: terminated"}, NetworkDown},
		{APIError{Text: "read ECONNRESET"}, NetworkDown},
		{APIError{Text: "socket hang up"}, NetworkDown},
		{APIError{Text: "Premature close"}, NetworkDown},
		{APIError{Text: "Connection error."}, NetworkDown},
		{APIError{Text: "other side closed"}, NetworkDown},
		{APIError{Text: `Connection reset by server {"service":"session","errorName":"APIError"}`}, NetworkDown},                                 // OpenCode
		{APIError{Text: `Model stream ended with empty response text. {"details":"Model stream ended with empty response text."}`}, NetworkDown}, // Qwen Code
		{APIError{Text: `Country, region, or territory not supported {"service":"session","errorName":"APIError"}`}, Forbidden},
		{APIError{Text: `Your API key does not have permission to use the specified resource {"service":"session","errorName":"APIError"}`}, Forbidden},
		{APIError{Text: `Forbidden {"service":"session","errorName":"APIError"}`}, Forbidden},
		{APIError{Text: "open /etc/x: permission denied"}, UnknownFailure},
		{APIError{Text: "Reconnecting... waiting for network"}, NetworkDown},
		{APIError{Text: "model not found: x"}, UnknownModel},
		{APIError{}, UnknownFailure},
	} {
		if got := c.e.Kind(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.e, got, c.want)
		}
	}
}
