package supervisor

func runClient() (int, error) { return 0, nil }
