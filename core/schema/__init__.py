"""What may be known of a table without its rows: columns, domains, rules, persons, forms."""
