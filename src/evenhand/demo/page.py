def write_page(path, account, demo, outcomes):
    path.write_text("x")
