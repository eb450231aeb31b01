PRICES = {"green tea": 3.20, "oolong": 3.80, "earl grey": 3.00, "lemon cake": 4.50}


def total(order):
    return round(sum(PRICES[item] for item in order), 2)
